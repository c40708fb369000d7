"""ELMoForManyLangs in NumPy, float64, one step at a time: what its conversion is compared with.

It is written from the description of the published files and shares no code with the plugin.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.numpy_bilm import sigmoid

WORDS = ["the", "<oov>", "dog", "<bos>", "<eos>", "<pad>", "\u3000", "Straße", "日本"]
CHARACTERS = [*"thedogaß日", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>", "\u3000", "本"]


def options(*, word_dim: int = 4, char_dim: int = 3, **changes: Any) -> dict[str, Any]:
    encoder = {"name": "elmo", "projection_dim": 5, "dim": 7, "n_layers": 2}
    clips = {"cell_clip": 1.5, "proj_clip": 1.5}
    token_embedder = {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 2], [2, 3], [4, 3]],
        "n_highway": 2,
        "word_dim": word_dim,
        "char_dim": char_dim,
        "max_characters_per_token": 9,
    }
    for key, value in changes.items():
        (token_embedder if key in token_embedder else encoder)[key] = value
    return {"encoder": {**clips, **encoder}, "token_embedder": token_embedder, "dropout": 0.1}


@dataclass
class NumpyManyLangs:
    """The layers of one sentence at a time, without boundaries."""

    options: dict[str, Any]
    words: dict[str, np.ndarray]
    context: dict[str, np.ndarray]

    @classmethod
    def random(cls, *, seed: int = 0, scale: float = 0.8, **changes: Any) -> NumpyManyLangs:
        chosen, random = options(**changes), np.random.default_rng(seed)

        def draw(*shape: int) -> np.ndarray:
            return (scale * random.standard_normal(shape)).astype(np.float32)

        sizes, context = chosen["token_embedder"], chosen["encoder"]
        words, width = {}, 0
        if sizes["word_dim"]:
            words["word_emb_layer.embedding.weight"] = draw(len(WORDS), sizes["word_dim"])
            width += sizes["word_dim"]
        if sizes["char_dim"]:
            words["char_emb_layer.embedding.weight"] = draw(len(CHARACTERS), sizes["char_dim"])
            for k, (size, num) in enumerate(sizes["filters"]):
                words[f"convolutions.{k}.weight"] = draw(num, sizes["char_dim"], size)
                words[f"convolutions.{k}.bias"] = draw(num)
            num_filters = sum(num for _, num in sizes["filters"])
            for k in range(sizes["n_highway"]):
                words[f"highways._layers.{k}.weight"] = draw(2 * num_filters, num_filters)
                words[f"highways._layers.{k}.bias"] = draw(2 * num_filters)
            width += num_filters
        dim, cell = context["projection_dim"], context["dim"]
        words |= {"projection.weight": draw(dim, width), "projection.bias": draw(dim)}
        lstms = {}
        for direction in ("forward", "backward"):
            for k in range(context["n_layers"]):
                name = f"{direction}_layer_{k}"
                lstms[f"{name}.input_linearity.weight"] = draw(4 * cell, dim)
                lstms[f"{name}.state_linearity.weight"] = draw(4 * cell, dim)
                lstms[f"{name}.state_linearity.bias"] = draw(4 * cell)
                lstms[f"{name}.state_projection.weight"] = draw(dim, cell)
        return cls(chosen, words, lstms)

    def save(self, folder: Path, *, config_path: str = "../configs/cnn.json") -> Path:
        """Write the files as they were published, in the format of PyTorch 0.4."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"seed": 1, "config_path": config_path}))
        (folder / Path(config_path).name).write_text(json.dumps(self.options))
        for name, items in (("word.dic", WORDS), ("char.dic", CHARACTERS)):
            lines = [f"{item}\t{number}\n" for number, item in enumerate(items)]
            (folder / name).write_text("".join(lines), encoding="utf-8")
        for name, state in (("token_embedder.pkl", self.words), ("encoder.pkl", self.context)):
            tensors = OrderedDict((key, torch.from_numpy(value)) for key, value in state.items())
            torch.save(tensors, folder / name, _use_new_zipfile_serialization=False)
        return folder

    def layers(self, words: list[str]) -> np.ndarray:
        """Return "layers words dim"."""
        limit = self.options["token_embedder"]["max_characters_per_token"] - 2
        framed = ["<bos>", *(word[:limit] for word in words), "<eos>"]
        vectors = [self.word(word) for word in framed]
        forward, backward = self.direction("forward", vectors), self.direction("backward", vectors)
        first = np.concatenate([vectors, vectors], axis=1)
        layers = [np.concatenate(pair, axis=1) for pair in zip(forward, backward, strict=True)]
        return np.stack([first, *layers])[:, 1:-1]

    def word(self, word: str) -> np.ndarray:
        parts, weights = [], self.words
        if self.options["token_embedder"]["word_dim"]:
            row = WORDS.index(word if word in WORDS else "<oov>")
            parts.append(weights["word_emb_layer.embedding.weight"][row])
        if self.options["token_embedder"]["char_dim"]:
            parts.append(self.spelling(word))
        vector = np.concatenate(parts).astype(np.float64)
        return weights["projection.weight"] @ vector + weights["projection.bias"]

    def spelling(self, word: str) -> np.ndarray:
        sizes, weights = self.options["token_embedder"], self.words
        inner = [word] if word in ("<bos>", "<eos>") else list(word)
        known = [each if each in CHARACTERS else "<oov>" for each in inner]
        spelled = ["<eow>", *known, "<bow>"]  # the published code has them the wrong way round
        spelled += ["<pad>"] * (sizes["max_characters_per_token"] - len(spelled))
        table = weights["char_emb_layer.embedding.weight"].astype(np.float64)
        rows = table[[CHARACTERS.index(each) for each in spelled]]
        maxima = []
        for k, (size, _) in enumerate(sizes["filters"]):
            kernel, bias = weights[f"convolutions.{k}.weight"], weights[f"convolutions.{k}.bias"]
            windows = [rows[start : start + size] for start in range(len(rows) - size + 1)]
            seen = [np.einsum("wd,ndw->n", window, kernel) + bias for window in windows]
            maxima.append(np.max(seen, axis=0))
        vector = np.concatenate(maxima)
        vector = np.tanh(vector) if sizes["activation"] == "tanh" else np.maximum(vector, 0)
        for k in range(sizes["n_highway"]):
            both = weights[f"highways._layers.{k}.weight"] @ vector
            both = both + weights[f"highways._layers.{k}.bias"]
            moved, gate = np.split(both, 2)
            vector = sigmoid(gate) * vector + (1 - sigmoid(gate)) * np.maximum(moved, 0)
        return vector

    def direction(self, direction: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        sizes, order = self.options["encoder"], slice(None, None, -1 if direction[0] == "b" else 1)
        layers, rows = [], inputs[order]
        for k in range(sizes["n_layers"]):
            hidden, memory = np.zeros(sizes["projection_dim"]), np.zeros(sizes["dim"])
            outputs = []
            for x in rows:
                hidden, memory = self.step(f"{direction}_layer_{k}", x, hidden, memory)
                outputs.append(hidden + x if k else hidden)
            layers.append(np.stack(outputs[order]))
            rows = outputs
        return layers

    def step(
        self, name: str, x: np.ndarray, hidden: np.ndarray, memory: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        weights, sizes = self.context, self.options["encoder"]
        gates = weights[f"{name}.input_linearity.weight"].astype(np.float64) @ x
        gates = gates + weights[f"{name}.state_linearity.weight"].astype(np.float64) @ hidden
        entered, forgotten, new, given = np.split(
            gates + weights[f"{name}.state_linearity.bias"], 4
        )
        memory = sigmoid(entered) * np.tanh(new) + sigmoid(forgotten) * memory
        memory = clip(memory, sizes["cell_clip"])
        output = weights[f"{name}.state_projection.weight"] @ (sigmoid(given) * np.tanh(memory))
        return clip(output, sizes["proj_clip"]), memory


def clip(values: np.ndarray, limit: float | None) -> np.ndarray:
    return np.clip(values, -limit, limit) if limit else values
