"""A biLM in NumPy, float64, one word and one step at a time: what the framework's is held against.

It is written from the description of bilm-tf's files alone and shares no code with the package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import h5py
import numpy as np
from safetensors.numpy import save_file


def small_options(**changes) -> dict:
    """Return the options of a small biLM; `changes` are those of its `lstm` and `char_cnn`."""
    lstm = {
        "dim": 7,
        "projection_dim": 4,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
    }
    char_cnn = {
        "embedding": {"dim": 3},
        "filters": [[1, 2], [2, 3], [3, 4]],
        "max_characters_per_token": 12,
        "n_characters": 262,
        "n_highway": 2,
        "activation": "relu",
    }
    for key, value in changes.items():
        (lstm if key in lstm else char_cnn)[key] = value
    return {"bidirectional": True, "lstm": lstm, "char_cnn": char_cnn}


def random_weights(options: dict, *, seed: int = 0, scale: float = 0.7) -> dict[str, np.ndarray]:
    """Return float32 datasets by their name in a file; a larger scale makes the clips fire."""
    random, weights = np.random.default_rng(seed), {}
    for name, shape in [*word_shapes(options), *lstm_shapes(options)]:
        weights[name] = (scale * random.standard_normal(shape)).astype(np.float32)
    return weights


def word_shapes(options: dict) -> Iterator[tuple[str, tuple[int, ...]]]:
    cnn, words = options["char_cnn"], options["lstm"]["projection_dim"]
    dim, filters = cnn["embedding"]["dim"], cnn["filters"]
    num_filters = sum(num for _, num in filters)
    yield "char_embed", (261, dim)
    for k, (width, num) in enumerate(filters):
        yield f"CNN/W_cnn_{k}", (1, width, dim, num)
        yield f"CNN/b_cnn_{k}", (num,)
    for k in range(cnn["n_highway"]):
        for kind in ("carry", "transform"):
            yield f"CNN_high_{k}/W_{kind}", (num_filters, num_filters)
            yield f"CNN_high_{k}/b_{kind}", (num_filters,)
    if num_filters != words:
        yield "CNN_proj/W_proj", (num_filters, words)
        yield "CNN_proj/b_proj", (words,)


def lstm_shapes(options: dict) -> Iterator[tuple[str, tuple[int, ...]]]:
    lstm, words = options["lstm"], options["lstm"]["projection_dim"]
    output = min(words, lstm["dim"])
    for direction, layer in product(range(2), range(lstm["n_layers"])):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        yield f"{cell}/W_0", ((output if layer else words) + output, 4 * lstm["dim"])
        yield f"{cell}/B", (4 * lstm["dim"],)
        if words < lstm["dim"]:
            yield f"{cell}/W_P_0", (lstm["dim"], words)


@dataclass
class NumpyBiLm:
    """The layers of one sentence at a time, boundaries included.

    `state` is a list of (c, m) by layer for each of the two directions.
    """

    options: dict
    weights: dict[str, np.ndarray]

    @classmethod
    def random(cls, *, seed: int = 0, scale: float = 0.7, **changes) -> NumpyBiLm:
        options = small_options(**changes)
        return cls(options, random_weights(options, seed=seed, scale=scale))

    def save(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "options.json").write_text(json.dumps(self.options))
        with h5py.File(directory / "weights.hdf5", "w") as file:
            for name, values in self.weights.items():
                file.create_dataset(name, data=values)
        return directory

    def layers(self, words: list[str], state=None) -> np.ndarray:
        return self.read(words, state)[0]

    def read(self, words: list[str], state=None) -> tuple[np.ndarray, list]:
        vectors = [self.word(self.symbols(word)) for word in ["<S>", *words, "</S>"]]
        first = state or [None, None]
        forward, forward_state = self.direction(0, vectors, first[0])
        backward, backward_state = self.direction(1, vectors[::-1], first[1])
        stacked = [np.concatenate([vectors, vectors], axis=1)]
        for ahead, back in zip(forward, backward, strict=True):
            stacked.append(np.concatenate([ahead, back[::-1]], axis=1))
        return np.stack(stacked), [forward_state, backward_state]

    def symbols(self, word: str) -> list[int]:
        """Return the 261-symbol ids: 256 and 257 sentence marks, 258 and 259 word marks, 260."""
        size = self.options["char_cnn"]["max_characters_per_token"]
        special = {"<S>": [256], "</S>": [257]}
        inner = special.get(word, list(word.encode("utf-8", "ignore")))[: size - 2]
        return ([258, *inner, 259] + size * [260])[:size]

    def word(self, symbols: list[int]) -> np.ndarray:
        cnn, weights = self.options["char_cnn"], self.weights
        embedded = np.array([weights["char_embed"][symbol] for symbol in symbols], np.float64)
        parts = []
        for k, (width, _) in enumerate(cnn["filters"]):
            kernel, bias = weights[f"CNN/W_cnn_{k}"][0], weights[f"CNN/b_cnn_{k}"]
            seen = [
                np.einsum("wd,wdn->n", embedded[start : start + width], kernel.astype(np.float64))
                for start in range(len(symbols) - width + 1)
            ]
            best = np.max(seen, axis=0) + bias
            parts.append(np.tanh(best) if cnn["activation"] == "tanh" else np.maximum(best, 0))
        vector = np.concatenate(parts)
        for k in range(cnn["n_highway"]):
            carry = vector @ weights[f"CNN_high_{k}/W_carry"] + weights[f"CNN_high_{k}/b_carry"]
            gate = sigmoid(carry)
            moved = vector @ weights[f"CNN_high_{k}/W_transform"]
            moved = np.maximum(moved + weights[f"CNN_high_{k}/b_transform"], 0)
            vector = gate * moved + (1 - gate) * vector
        if "CNN_proj/W_proj" in weights:
            vector = vector @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
        return vector

    def direction(self, number: int, vectors: list[np.ndarray], state) -> tuple[list, list]:
        lstm, inputs, layers, states = self.options["lstm"], vectors, [], []
        for layer in range(lstm["n_layers"]):
            c, m = state[layer] if state else self.zeros()
            outputs = []
            for x in inputs:
                c, m = self.step(number, layer, x, c, m)
                has_skip = layer > 0 and lstm["use_skip_connections"]
                outputs.append(m + x if has_skip else m)
            layers.append(np.stack(outputs))
            states.append((c, m))
            inputs = outputs
        return layers, states

    def zeros(self) -> tuple[np.ndarray, np.ndarray]:
        lstm = self.options["lstm"]
        return np.zeros(lstm["dim"]), np.zeros(min(lstm["dim"], lstm["projection_dim"]))

    def step(self, direction: int, layer: int, x, c, m) -> tuple[np.ndarray, np.ndarray]:
        lstm, dim = self.options["lstm"], self.options["lstm"]["dim"]
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        z = np.concatenate([x, m]) @ self.weights[f"{cell}/W_0"].astype(np.float64)
        z = z + self.weights[f"{cell}/B"]
        i, j, f, o = (z[k * dim : (k + 1) * dim] for k in range(4))
        c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)
        c = clip(c, lstm["cell_clip"])
        m = sigmoid(o) * np.tanh(c)
        if f"{cell}/W_P_0" in self.weights:
            m = clip(m @ self.weights[f"{cell}/W_P_0"], lstm["proj_clip"])
        return c, m


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def clip(values: np.ndarray, limit: float | None) -> np.ndarray:
    return values if limit is None else np.clip(values, -limit, limit)


@dataclass
class NumpySoftmax:
    """The bits of the words of one sentence at a time, from the top layer of a `NumpyBiLm`."""

    words: list[str]
    weight: np.ndarray
    bias: np.ndarray

    @classmethod
    def random(cls, bilm: NumpyBiLm, words: list[str], *, seed: int = 1) -> NumpySoftmax:
        random = np.random.default_rng(seed)
        shape = len(words) + 3, min(bilm.options["lstm"][key] for key in ("dim", "projection_dim"))
        weight = random.standard_normal(shape).astype(np.float32)
        return cls(words, weight, random.standard_normal(shape[0]).astype(np.float32))

    def save(self, directory: Path) -> Path:
        lines = [*_SPECIAL, *self.words]
        (directory / "vocabulary.txt").write_text("".join(f"{line}\n" for line in lines))
        save_file({"weight": self.weight, "bias": self.bias}, directory / "softmax.safetensors")
        return directory

    def score(self, bilm: NumpyBiLm, words: list[str], state=None) -> tuple[list, list, list]:
        """Return the bits of the words and `</S>`, of `<S>` and the words, and the last state."""
        layers, state = bilm.read(words, state)
        half = layers.shape[2] // 2
        ids = [self.id(word) for word in ["<S>", *words, "</S>"]]
        ahead = [self.bits(layers[-1, at - 1, :half], ids[at]) for at in range(1, len(ids))]
        back = [self.bits(layers[-1, at + 1, half:], ids[at]) for at in range(len(ids) - 1)]
        return ahead, back, state

    def id(self, word: str) -> int:
        lines = [*_SPECIAL, *self.words]
        return lines.index(word) if word in lines else 2

    def bits(self, vector: np.ndarray, target: int) -> float:
        logits = self.weight.astype(np.float64) @ vector + self.bias
        exponentials = np.exp(logits - logits.max())
        return -np.log2(exponentials[target] / exponentials.sum())


_SPECIAL = ("<S>", "</S>", "<UNK>")
