"""context2vec: a vector for the context of a word."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config.types import ReferencedPath
from elmo_framework.console import plural
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.data.formats.word_vector_files import parse_vector
from elmo_framework.data.text import TextBatch
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import DataError
from elmo_framework.io.files import digest
from elmo_framework.model.part import Reference
from elmo_framework.nn.packing import reversed_rows
from elmo_framework.nn.recurrent import read_rows

_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy and zipfile raise for damaged files."""

_UNKNOWN, _BEGIN, _END = 0, 1, 2
"""The ids of `<UNK>`, `<BOS>` and `<EOS>`, which come first among the words."""

_GATES = [1, 2, 0, 3]
"""Where torch's input, forget, candidate and output gates are among Chainer's four."""

_HEADER = re.compile(r"[0-9]+ [0-9]+ *")

_KEYS = ("model_file", "words_file", "unit", "deep")


@final
@TokenEmbedder.register("context2vec")
class Context2vecTokenEmbedder(TokenEmbedder):
    """The context of each word as context2vec sees it (Melamud et al., 2016), never trained.

        c_k = MLP([l2r(<BOS> w_1 ... w_k-1) ; r2l(<EOS> w_n ... w_k+1)])

    The word itself has no part in c_k; its own vector, that of the model's targets with the
    length 1, can be appended to it. Words are lowercased. The weights are not saved with a run;
    loading the run reads them again.

    Args:
        model_file: the `.params` file of a model; the files that it names are next to it.
        vectors: which are given: that of the context, that of the word as a target, or both in
            this order.
    """

    def __init__(
        self,
        model_file: ReferencedPath,
        vectors: Literal["context", "target", "both"] = "both",
    ) -> None:
        super().__init__()
        self._files = _read_files(model_file)
        self.reference = Reference(
            model_file, digest([model_file, self._files.model, self._files.words])
        )
        self._vectors = vectors
        self._network: _Network | None = None
        self.output_dim = self._files.output_dim * (2 if vectors == "both" else 1)

    @torch.no_grad()
    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        if self._network is None:
            self._network = _Network(self._files)
        ids = self._network.ids(text)
        parts = []
        if self._vectors != "target":
            parts.append(self._network.contexts(ids, text.mask))
        if self._vectors != "context":
            parts.append(self._network.targets(ids, text.mask))
        return torch.cat(parts, dim=2)


@dataclass(frozen=True)
class _Files:
    """The settings of a `.params` file, and the files that it names.

    Attributes:
        params: the file itself.
        model: Chainer's arrays.
        words: the words, in the order of their ids, with their vectors as targets.
        unit: the dimension of the vectors that words are read as.
        is_deep: whether the two directions meet in a network of two layers.
    """

    params: Path
    model: Path
    words: Path
    unit: int
    is_deep: bool

    @property
    def output_dim(self) -> int:
        """The dimension of the vector of a context, and of a target."""
        return 2 * self.unit


class _Network:
    """Gives the vectors of contexts and of targets, without gradients.

    It is not a module, so that its tables, which can take a gigabyte, stay out of a run's weights
    and in the memory of the CPU; only the vectors of a batch go to another device.

    Raises:
        DataError: a file cannot be read, or the two do not fit each other.
    """

    def __init__(self, files: _Files) -> None:
        words, targets = _read_words(files)
        arrays = _read_arrays(files, len(words))
        self._ids = {word: index for index, word in enumerate(words)}
        self._targets = functional.normalize(targets, dim=1)
        self._tables = {name: arrays[f"{name}_embed/W"] for name in ("l2r", "r2l")}
        self._is_deep = files.is_deep
        names = ("l3", "l4") if files.is_deep else ("lp_l2r", "lp_r2l")
        self._modules = nn.ModuleDict(
            {
                **{name: _lstm(arrays, f"{name}_1") for name in self._tables},
                **{name: _linear(arrays, name) for name in names},
            }
        ).requires_grad_(False)

    def ids(self, text: TextBatch) -> Int[Tensor, "batch tokens"]:
        """Return the ids of words in lower case, on the CPU; 0 for unknown and padding."""
        ids = torch.zeros(text.mask.shape, dtype=torch.long, device="cpu")
        for row, words in zip(ids, text.words, strict=True):
            indices = [self._ids.get(word.lower(), _UNKNOWN) for word in words]
            row[: len(indices)] = torch.tensor(indices, dtype=torch.long, device="cpu")
        return ids

    def targets(
        self, ids: Int[Tensor, "batch tokens"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """Return the vectors of words as targets, of the length 1."""
        return functional.embedding(ids, self._targets).to(mask.device) * mask[:, :, None]

    def contexts(
        self, ids: Int[Tensor, "batch tokens"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens dim"]:
        self._modules.to(mask.device)
        forward = self._read("l2r", _shifted(ids, _BEGIN), mask)
        turned = _shifted(reversed_rows(ids, mask.to(ids.device)), _END)
        backward = reversed_rows(self._read("r2l", turned, mask), mask)
        if self._is_deep:
            both = torch.cat([forward, backward], dim=2)
            merged: Tensor = self._modules["l4"](functional.relu(self._modules["l3"](both)))
        else:
            halves = self._modules["lp_l2r"](forward), self._modules["lp_r2l"](backward)
            merged = torch.cat(halves, dim=2)
        return merged * mask[:, :, None]

    def _read(self, name: str, ids: Tensor, mask: Tensor) -> Float[Tensor, "batch tokens dim"]:
        vectors = functional.embedding(ids, self._tables[name]).to(mask.device)
        lstm = self._modules[name]
        assert isinstance(lstm, nn.LSTM)
        return read_rows(lstm, vectors, mask)[0]


def _read_files(params: Path) -> _Files:
    """Read a `.params` file: a name and a value a line; lines that begin with `#` are comments.

    Raises:
        DataError: it is not such a file, or a file that it names is not next to it.
    """
    rows = [line.split() for _, line in read_lines(params) if not line.startswith("#")]
    settings = dict(row for row in rows if len(row) == 2)
    missing = [key for key in _KEYS if key not in settings]
    if missing:
        raise DataError(f"{missing[0]!r} is missing; needed: {', '.join(_KEYS)}", path=params)
    if not settings["unit"].isdecimal() or settings["deep"] not in ("yes", "no"):
        message = f"unit is {settings['unit']!r} and deep is {settings['deep']!r}"
        raise DataError(f"{message}; expected a number, and yes or no", path=params)
    files = [params.parent / settings[key] for key in ("model_file", "words_file")]
    for file in files:
        if not file.is_file():
            raise DataError(f"is named by {params} and does not exist", path=file)
    model, words = files
    return _Files(params, model, words, int(settings["unit"]), settings["deep"] == "yes")


def _read_words(files: _Files) -> tuple[list[str], Tensor]:
    """Read the words and their vectors, after a line that counts them."""
    lines = read_lines(files.words)
    _, header = next(lines, (1, ""))
    expected = files.output_dim
    if not _HEADER.fullmatch(header) or header.split()[1:] != [str(expected)]:
        message = f"found {header!r}, expected the number of words and {expected}"
        raise DataError(message, path=files.words, line=1)
    words: list[str] = []
    targets = np.empty((int(header.split()[0]), expected), dtype=np.float32)
    for number, line in lines:
        if len(words) == len(targets):
            message = f"expected {plural(len(targets), 'word')} (see the first line), found more"
            raise DataError(message, path=files.words, line=number)
        word, *values = line.rstrip(" ").rsplit(" ", expected)
        targets[len(words)] = parse_vector(values, expected, files.words, number)
        words.append(word)
    if len(words) < len(targets):
        message = (
            f"found {plural(len(words), 'word')}, expected {len(targets)} (see the first line)"
        )
        raise DataError(message, path=files.words)
    return words, torch.from_numpy(targets)


def _read_arrays(files: _Files, num_words: int) -> dict[str, Tensor]:
    try:
        with np.load(files.model, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _DAMAGE as error:
        raise DataError(f"not a Chainer model file: {error}", path=files.model) from error
    for name, shape in _shapes(files, num_words):
        actual = arrays[name].shape if name in arrays else "none"
        if actual != shape:
            message = f"expected an array {name} of the shape {shape}, found {actual}"
            raise DataError(message, path=files.model)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _shapes(files: _Files, num_words: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    unit, hidden = files.unit, 2 * files.unit
    for name in ("l2r", "r2l"):
        yield f"{name}_embed/W", (num_words, unit)
        yield f"{name}_1/upward/W", (4 * hidden, unit)
        yield f"{name}_1/upward/b", (4 * hidden,)
        yield f"{name}_1/lateral/W", (4 * hidden, hidden)
    linear = (
        {"l3": (2 * hidden, 2 * hidden), "l4": (hidden, 2 * hidden)}
        if files.is_deep
        else {"lp_l2r": (unit, hidden), "lp_r2l": (unit, hidden)}
    )
    for name, shape in linear.items():
        yield f"{name}/W", shape
        yield f"{name}/b", shape[:1]


def _lstm(arrays: Mapping[str, Tensor], name: str) -> nn.LSTM:
    """Make a torch LSTM of a Chainer LSTM, which has one bias."""
    upward, lateral = arrays[f"{name}/upward/W"], arrays[f"{name}/lateral/W"]
    lstm = nn.LSTM(upward.shape[1], lateral.shape[1], batch_first=True, device="cpu")
    lstm.load_state_dict(
        {
            "weight_ih_l0": _torch_gates(upward),
            "weight_hh_l0": _torch_gates(lateral),
            "bias_ih_l0": _torch_gates(arrays[f"{name}/upward/b"]),
            "bias_hh_l0": torch.zeros(len(lateral), device="cpu"),
        }
    )
    return lstm


def _torch_gates(array: Tensor) -> Tensor:
    """Reorder rows: Chainer has the four gates of a unit together, torch all units of a gate."""
    by_unit = array.reshape(len(array) // 4, 4, *array.shape[1:])
    return by_unit.transpose(0, 1)[_GATES].reshape(array.shape)


def _linear(arrays: Mapping[str, Tensor], name: str) -> nn.Linear:
    weight = arrays[f"{name}/W"]
    linear = nn.Linear(weight.shape[1], weight.shape[0], device="cpu")
    linear.load_state_dict({"weight": weight, "bias": arrays[f"{name}/b"]})
    return linear


def _shifted(ids: Int[Tensor, "batch tokens"], first: int) -> Int[Tensor, "batch tokens"]:
    """Put an id before each row and leave its last one out."""
    return functional.pad(ids[:, :-1], (1, 0), value=first)
