"""A report on the files of a biLM: their content, and statistics of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import get_args

import torch
from torch import Tensor

from elmo_framework.bilm.bilm import BiLm, with_boundaries
from elmo_framework.bilm.context_layers import Direction, ElmoLstmContextLayers, State
from elmo_framework.bilm.files.load import BiLmFiles, read_bilm, reference
from elmo_framework.bilm.files.weights_hdf5 import list_datasets, names_read
from elmo_framework.bilm.layer_output import LayerOutput
from elmo_framework.data.text import collate_text
from elmo_framework.errors import DataError

SENTENCE = ("The", "dog", "'s", "bark", "woke", "everyone", "in", "Zürich", ".")
"""The input of the forward pass."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in the weight file; `is_read` is false where the biLM ignores it."""

    name: str
    shape: tuple[int, ...]
    is_read: bool


@dataclass(frozen=True)
class Clip:
    """A limit of the LSTM's.

    Attributes:
        limit: the largest magnitude that is allowed; None for no limit.
        share: the fraction of the numbers that are at the limit for `SENTENCE`.
    """

    limit: float | None
    share: float


@dataclass(frozen=True)
class WeightsReport:
    """Facts about the files of a biLM.

    Attributes:
        digest: SHA-256 of their content, as runs record it.
        num_parameters: that the biLM has.
        output_dim: the dimension of a layer, both directions together.
        tensors: in the weight file.
        layers: the `mean`, the `standard_deviation` and the `largest` magnitude of each layer for
            `SENTENCE`, without boundaries.
        clips: of the memory and of the projected output, by these names; none for parts other
            than `elmo_lstm`.
        use_skip_connections: whether a layer's input is added to its output; None where `clips`
            is empty.
    """

    digest: str
    num_parameters: int
    output_dim: int
    tensors: tuple[StoredTensor, ...]
    layers: tuple[dict[str, float], ...]
    clips: dict[str, Clip]
    use_skip_connections: bool | None


def inspect_weights(files: BiLmFiles) -> WeightsReport:
    """Read the files of a biLM and let it read a sentence.

    Raises:
        DataError: a file cannot be read, the two do not fit, or a layer has a number that is
            not finite.
    """
    bilm = read_bilm(files)
    text = collate_text([SENTENCE], (bilm.token_encoder.indexer,))
    characters = text.ids[bilm.token_encoder.indexer.key]
    with torch.no_grad():
        output, clips = bilm(characters), _clips(bilm, characters)
    context = bilm.description["context_layers"]
    return WeightsReport(
        digest=reference(files).digest,
        num_parameters=sum(parameter.numel() for parameter in bilm.parameters()),
        output_dim=bilm.output_dim,
        tensors=tuple(_tensors(files, bilm)),
        layers=tuple(_statistics(files, output)),
        clips=clips,
        use_skip_connections=context["use_skip_connections"] if clips else None,
    )


def _tensors(files: BiLmFiles, bilm: BiLm) -> Iterator[StoredTensor]:
    if files.is_generic:
        for name, tensor in bilm.state_dict().items():
            yield StoredTensor(name, tuple(tensor.shape), is_read=True)
        return
    names = names_read(bilm)
    for name, shape in list_datasets(files.weights).items():
        yield StoredTensor(name, shape, name in names)


def _statistics(files: BiLmFiles, output: LayerOutput) -> Iterator[dict[str, float]]:
    for number, layer in enumerate(output.layers[:, 0, 1:-1]):
        if not layer.isfinite().all():
            message = f"layer {number} of {' '.join(SENTENCE)!r} holds numbers that are not finite"
            raise DataError(message, path=files.weights)
        yield {
            "mean": layer.mean().item(),
            "standard_deviation": layer.std().item(),
            "largest": layer.abs().max().item(),
        }


def _clips(bilm: BiLm, characters: Tensor) -> dict[str, Clip]:
    if not isinstance(bilm.context_layers, ElmoLstmContextLayers):
        return {}
    options = bilm.description["context_layers"]
    rates = bilm.context_layers.clip_rates(_state(bilm, characters))
    clips = {}
    for kind in ("cell", "projection"):
        # Of layers that are equally wide, the mean of the shares is the share of all numbers.
        own = [rate for name, rate in rates.items() if name.startswith(f"{kind}_")]
        limit = options[f"{kind}_clip"] if own else None
        clips[f"{kind}_clip"] = Clip(limit, fmean(own or [0.0]))
    return clips


def _state(bilm: BiLm, characters: Tensor) -> State:
    """Return the state after every word in both directions, as if these were rows of a batch."""
    words = bilm.encode(with_boundaries(characters, bilm.token_encoder.indexer))
    states: list[State] = []
    for direction in get_args(Direction):
        state, turned = None, words if direction == "forward" else words.flip(1)
        for word in torch.split(turned, 1, dim=1):
            mask = torch.ones(word.shape[:2], dtype=torch.bool, device=word.device)
            state = bilm.context_layers.read(word, mask, direction=direction, state=state).state
            states.append(state)
    return tuple(torch.cat(steps) for steps in zip(*states, strict=True))
