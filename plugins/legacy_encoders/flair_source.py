"""Character language models of Flair as a frozen source of layers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, final, get_args

import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework import DataError
from elmo_framework.bilm import Direction, LayerOutput, LayerState, framed_mask
from elmo_framework.data import TextBatch, longest_first, padded_batches
from elmo_framework.layers import EncoderFormat, LayerSource
from elmo_framework.model import Reference
from elmo_framework.nn import ElmoLstm, Linear, ProjectedLstm, TensorPart

Precision: TypeAlias = Literal["float32", "bfloat16", "int8"]

_CHARACTERS_AT_ONCE = 8192
"""The largest number of characters of a batch, padding counted; it bounds the memory of a pass."""

_FLAGS = "with_whitespace", "is_lower"
_END = " "
"""What Flair puts behind a sentence."""


@dataclass(frozen=True)
class LanguageModelOptions:
    """The sizes of one character language model.

    Attributes:
        characters: their ids; all others have the id 0.
        num_characters: the number of character vectors.
        start: what Flair puts before a sentence, which it calls the document delimiter.
        embedding_dim: the width of a character vector.
        hidden_size: the width of an LSTM layer.
        num_layers: the number of LSTM layers.
        projection_dim: the width of a linear layer after the top one; None for none.
    """

    characters: Mapping[str, int]
    num_characters: int
    start: str
    embedding_dim: int
    hidden_size: int
    num_layers: int
    projection_dim: int | None

    def __post_init__(self) -> None:
        sizes = [self.num_characters, self.embedding_dim, self.hidden_size, self.num_layers]
        sizes += [] if self.projection_dim is None else [self.projection_dim]
        if min(sizes) < 1:
            raise ValueError(f"its sizes are {sizes}; they must be positive numbers")
        if not all(0 <= each < self.num_characters for each in self.characters.values()):
            raise ValueError("the id of a character has no vector")
        if not isinstance(self.start, str):  # it is from JSON
            raise TypeError(f"start is {self.start!r}; expected a string")


@final
class CharacterLanguageModel(nn.Module):
    """The LSTM of one direction, without weights until `load`.

    Attributes:
        num_layers: the layers that it gives: those of the LSTM, or the projection of the top one.
        dim: the width of a layer.
    """

    def __init__(self, options: LanguageModelOptions) -> None:
        super().__init__()
        hidden, projection = options.hidden_size, options.projection_dim
        self.options = options
        widths = [options.embedding_dim, *[hidden] * (options.num_layers - 1)]
        with torch.device("meta"):  # draws no random numbers
            self.table = nn.Parameter(torch.empty(options.num_characters, options.embedding_dim))
            cells = [ProjectedLstm(width, hidden) for width in widths]
            self.lstm = ElmoLstm(cells, use_skip_connections=False)
            self.projection = None if projection is None else Linear(hidden, projection)
        self.requires_grad_(False)
        self.num_layers = options.num_layers if projection is None else 1
        self.dim = hidden if projection is None else projection

    def ids(self, text: str) -> list[int]:
        """Return the ids of the characters of a sentence, in reading order, and of its ends."""
        characters = self.options.characters
        return [characters.get(each, 0) for each in f"{self.options.start}{text}{_END}"]

    def forward(
        self, ids: Int[Tensor, "rows characters"], mask: Bool[Tensor, "rows characters"]
    ) -> Float[Tensor, "layers rows characters dim"]:
        layers: Tensor
        layers, _ = self.lstm(functional.embedding(ids, self.table), mask)
        if self.projection is not None:
            layers = self.projection(layers[-1:])
        return layers

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the weights of Flair's module.

        Raises:
            KeyError: one is missing.
            RuntimeError: one has another shape.
        """
        state = {"table": tensors["encoder.weight"]}
        for layer in range(self.options.num_layers):
            gates = {
                "input_weight": tensors[f"rnn.weight_ih_l{layer}"],
                "recurrent_weight": tensors[f"rnn.weight_hh_l{layer}"],
                "bias": tensors[f"rnn.bias_ih_l{layer}"] + tensors[f"rnn.bias_hh_l{layer}"],
            }
            for name, values in gates.items():
                # PyTorch's order is that of AllenNLP; our LSTM adds 1 to the forget gate.
                entered, forgotten, new, given = values.chunk(4)
                forgotten = forgotten - 1 if name == "bias" else forgotten
                state[f"lstm.cells.{layer}.{name}"] = torch.cat([entered, new, forgotten, given])
        if self.projection is not None:
            for kind in ("weight", "bias"):
                state[f"projection.{kind}"] = tensors[f"proj.{kind}"]
        dtype = torch.get_default_dtype()
        self.load_state_dict({name: each.to(dtype) for name, each in state.items()}, assign=True)


class _Sentence(NamedTuple):
    """A sentence as the language models read it.

    Attributes:
        text: its words with spaces between them.
        starts: where each word starts.
        ends: where each word ends; the next character is a space or the end.
    """

    text: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, words: Sequence[str]) -> _Sentence:
        ends = [end - 1 for end in accumulate(len(word) + 1 for word in words)]
        starts = [end - len(word) for end, word in zip(ends, words, strict=True)]
        return cls(" ".join(words), starts, ends)


@final
class FlairSource(LayerSource):
    """Gives the layers of the words of batches: the forward direction, then the backward one.

    A word has the state of the forward model after the space behind it, and that of the backward
    model after the space before it (Akbik et al. 2018); without `with_whitespace`, after its own
    last and first character. The boundaries `<S>` and `</S>` have the states after the start and
    after the whole sentence. Equal sentences of a batch are computed once.

    Args:
        models: of each direction; one may be missing.
        with_whitespace: whether a word's space is read before its state is taken.
        is_lower: whether words are converted to lower case.
        precision: of the products.
        fingerprint: of the files that they were read from.
    """

    def __init__(
        self,
        models: Mapping[Direction, CharacterLanguageModel],
        *,
        with_whitespace: bool = True,
        is_lower: bool = False,
        precision: Precision = "float32",
        fingerprint: Reference | None = None,
    ) -> None:
        num_layers = {model.num_layers for model in models.values()}
        if len(num_layers) != 1:
            raise ValueError("there must be one language model, or two with as many layers")
        self._models = dict(models)
        sizes = [each.numel() for model in models.values() for each in model.parameters()]
        super().__init__(
            num_layers=num_layers.pop(),
            dim=sum(model.dim for model in models.values()),
            fingerprint=fingerprint,
            num_frozen_parameters=sum(sizes),
        )
        self._offset, self._is_lower = (0 if with_whitespace else -1), is_lower
        self._precision: Precision = precision
        self._device: torch.device | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FlairSource:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle; products are prepared again after loading."""
        return {**self.__dict__, "_device": None, "_last": None}

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        mask, device = framed_mask(text.mask), text.mask.device
        self._prepare(device)
        dtype = torch.get_default_dtype()
        layers = torch.zeros(self.num_layers, *mask.shape, self.dim, dtype=dtype, device=device)
        distinct = list(dict.fromkeys(words for words in text.words if words))
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            vectors = dict(self._vectors(distinct, device))
        for row, words in enumerate(text.words):
            if words:
                layers[:, row, : len(words) + 2] = vectors[words]
        return LayerOutput(layers, mask, {})

    def _prepare(self, device: torch.device) -> None:
        if device != self._device:
            for model in self._models.values():
                for part in model.to(device).modules():
                    if isinstance(part, TensorPart):
                        part.freeze(self._precision)
            self._device = device

    def _vectors(
        self, sentences: Sequence[Sequence[str]], device: torch.device
    ) -> Iterator[tuple[Sequence[str], Float[Tensor, "layers steps dim"]]]:
        """Yield the vectors of each sentence, those of its boundaries among them."""
        read = [
            _Sentence.of([word.lower() for word in words] if self._is_lower else words)
            for words in sentences
        ]
        lengths = [len(each.text) for each in read]
        order = longest_first(range(len(read)), lengths)
        for group in padded_batches(order, lengths.__getitem__, max_tokens=_CHARACTERS_AT_ONCE):
            halves = [
                self._direction(direction, model, [read[index] for index in group], device)
                for direction, model in self._models.items()
            ]
            for index, *parts in zip(group, *halves, strict=True):
                yield sentences[index], torch.cat(parts, dim=-1)

    def _direction(
        self,
        direction: str,
        model: CharacterLanguageModel,
        sentences: Sequence[_Sentence],
        device: torch.device,
    ) -> Iterator[Float[Tensor, "layers steps dim"]]:
        """Yield the vectors of one direction for each sentence."""
        is_forward = direction == "forward"
        rows = [model.ids(each.text if is_forward else each.text[::-1]) for each in sentences]
        mask = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.bool)
        ids = torch.zeros(mask.shape, dtype=torch.long)
        for number, row in enumerate(rows):
            mask[number, : len(row)] = True
            ids[number, : len(row)] = torch.tensor(row)
        states = model(ids.to(device), mask)
        start = len(model.options.start)
        for number, sentence in enumerate(sentences):
            length = len(sentence.text)
            # In reading order, the character behind a word is that after its last or its first one.
            behind = sentence.ends if is_forward else [length - each for each in sentence.starts]
            places = [max(0, start + each + self._offset) for each in behind]
            bounds = [max(0, start - 1), start + length]
            first, last = bounds if is_forward else reversed(bounds)
            yield states[:, number, [first, *places, last]]


@final
@EncoderFormat.register("flair")
class FlairFormat(EncoderFormat):
    """Language models of Flair, as `convert_flair.py` writes them."""

    options_file, weights_file = "flair.json", "flair.safetensors"

    def read(self, folder: Path, precision: Precision, fingerprint: Reference) -> FlairSource:
        """Read the language models; under the device `meta`, without weights.

        Raises:
            DataError: a file is missing or damaged.
        """
        path = folder / self.options_file
        try:
            options = dict(json.loads(path.read_text(encoding="utf-8")))
            if unknown := options.keys() - {*_FLAGS, *get_args(Direction)}:
                raise ValueError(f"unknown key {min(unknown)!r}")
            models = {
                direction: CharacterLanguageModel(LanguageModelOptions(**options[direction]))
                for direction in get_args(Direction)
                if direction in options
            }
            source = FlairSource(
                models,
                **{flag: bool(options[flag]) for flag in _FLAGS},
                precision=precision,
                fingerprint=fingerprint,
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"not the options of Flair's models: {error!r}", path=path) from error
        if torch.get_default_device().type != "meta":
            _load(models, folder / self.weights_file)
        return source


def _load(models: Mapping[Direction, CharacterLanguageModel], path: Path) -> None:
    try:
        tensors = load_file(path)
        for direction, model in models.items():
            prefix = f"{direction}."
            model.load(
                {
                    name.removeprefix(prefix): tensor
                    for name, tensor in tensors.items()
                    if name.startswith(prefix)
                }
            )
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise DataError(f"not the weights of these models: {error}", path=path) from error
