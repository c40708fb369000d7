"""Flair's language models in NumPy, float64, one character at a time: what ours are compared with.

It is written from the description of Flair's embeddings and shares no code with the plugin.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.numpy_bilm import sigmoid

CHARACTERS = {"<": 5, "\n": 3, " ": 1, **{each: 6 + n for n, each in enumerate("TahedogskßU")}}


@dataclass
class NumpyLanguageModel:
    """One direction."""

    is_forward: bool
    sizes: dict[str, Any]
    weights: dict[str, np.ndarray]

    @classmethod
    def random(
        cls, *, is_forward: bool, seed: int, start: str = "\n", **sizes: Any
    ) -> NumpyLanguageModel:
        random = np.random.default_rng(seed)

        def draw(*shape: int) -> np.ndarray:
            return (0.8 * random.standard_normal(shape)).astype(np.float32)

        chosen = {
            "characters": CHARACTERS,
            "num_characters": 6 + 11,
            "start": start,
            "embedding_dim": 3,
            "hidden_size": 5,
            "num_layers": 1,
            "projection_dim": None,
            **sizes,
        }
        hidden, projection = chosen["hidden_size"], chosen["projection_dim"]
        weights = {"encoder.weight": draw(chosen["num_characters"], chosen["embedding_dim"])}
        for layer in range(chosen["num_layers"]):
            width = hidden if layer else chosen["embedding_dim"]
            weights[f"rnn.weight_ih_l{layer}"] = draw(4 * hidden, width)
            weights[f"rnn.weight_hh_l{layer}"] = draw(4 * hidden, hidden)
            weights[f"rnn.bias_ih_l{layer}"] = draw(4 * hidden)
            weights[f"rnn.bias_hh_l{layer}"] = draw(4 * hidden)
        if projection:
            weights |= {"proj.weight": draw(projection, hidden), "proj.bias": draw(projection)}
        return cls(is_forward, chosen, weights)

    def states(self, text: str) -> np.ndarray:
        """Return "layers characters dim", in reading order."""
        text = self.sizes["start"] + (text if self.is_forward else text[::-1]) + " "
        weights, layers = self.weights, []
        rows = [weights["encoder.weight"][CHARACTERS.get(each, 0)] for each in text]
        for layer in range(self.sizes["num_layers"]):
            hidden, memory = (np.zeros(self.sizes["hidden_size"]) for _ in range(2))
            outputs = []
            for x in rows:
                gates = weights[f"rnn.weight_ih_l{layer}"].astype(np.float64) @ x
                gates = gates + weights[f"rnn.weight_hh_l{layer}"].astype(np.float64) @ hidden
                gates = gates + weights[f"rnn.bias_ih_l{layer}"] + weights[f"rnn.bias_hh_l{layer}"]
                entered, forgotten, new, given = np.split(gates, 4)
                memory = sigmoid(forgotten) * memory + sigmoid(entered) * np.tanh(new)
                hidden = sigmoid(given) * np.tanh(memory)
                outputs.append(hidden)
            layers.append(np.stack(outputs))
            rows = outputs
        if "proj.weight" in weights:
            return layers[-1:] @ weights["proj.weight"].T + weights["proj.bias"]
        return np.stack(layers)

    def word_states(self, words: list[str], *, with_whitespace: bool) -> np.ndarray:
        """Return "layers words dim"."""
        text, chosen = " ".join(words), []
        states = self.states(text)
        for number, word in enumerate(words):
            start = len(" ".join([*words[:number], ""]))
            # What is read behind a word, counted in the text as it is read.
            behind = start + len(word) if self.is_forward else len(text) - start
            chosen.append(len(self.sizes["start"]) + behind - (0 if with_whitespace else 1))
        return states[:, chosen]


@dataclass(frozen=True)
class NumpyFlair:
    """Both directions, or one."""

    models: dict[str, NumpyLanguageModel]
    with_whitespace: bool = True
    is_lower: bool = False

    @classmethod
    def random(cls, *directions: str, **sizes: Any) -> NumpyFlair:
        chosen = directions or ("forward", "backward")
        return cls(
            {
                each: NumpyLanguageModel.random(
                    is_forward=each == "forward", seed=len(each), **sizes
                )
                for each in chosen
            }
        )

    def with_options(self, **options: bool) -> NumpyFlair:
        return replace(self, **options)

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        options = {"with_whitespace": self.with_whitespace, "is_lower": self.is_lower}
        sizes = {name: model.sizes for name, model in self.models.items()}
        (folder / "flair.json").write_text(json.dumps({**options, **sizes}))
        tensors = {
            f"{name}.{key}": values
            for name, model in self.models.items()
            for key, values in model.weights.items()
        }
        save_file(tensors, folder / "flair.safetensors")
        return folder

    def layers(self, words: list[str]) -> np.ndarray:
        """Return "layers words dim"."""
        read = [word.lower() for word in words] if self.is_lower else words
        parts = [
            model.word_states(read, with_whitespace=self.with_whitespace)
            for model in self.models.values()
        ]
        return np.concatenate(parts, axis=2)
