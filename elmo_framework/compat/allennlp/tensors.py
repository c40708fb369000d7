"""Weights of AllenNLP's models under our names and in our layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.compat.allennlp.parameter_names import Pair
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder

_NUM_LISTED = 5

_HIGHWAY = re.compile(r"(?:^|\.)highway\.layers\.\d+\.(carry|transform)\.(weight|bias)$")
_NOT_READ = re.compile(r"(^|\.)(_elmo_lstm\..*|_constraint_mask)$")
"""The frozen biLM, which a run reads from its files; constraints, which follow from the tags."""

INPUT_WEIGHT = "_pre_encode_feedforward._linear_layers.0.weight"
"""Of a BCN: it reads the vectors of the words."""

_POOLED = "_output_layer._linear_layers.0.weight"
"""Of a BCN."""
_OF_SPANS = re.compile(
    r"_mention_(feedforward|pruner\._scorer\.0)\._module\._linear_layers\.0\.weight$"
)
_OF_PAIRS = "_antecedent_feedforward._module._linear_layers.0.weight"
_NUM_SPANS_OF_PAIR = 3  # both, and their product
_SPAN_WIDTHS = "_endpoint_span_extractor._span_width_embedding.weight"
_SPAN_ATTENTION = "_attentive_span_extractor._global_attention._module.weight"

_INPUT_BIAS, _STATE_BIAS = "input_linearity.bias", "state_linearity.bias"
_OF_LSTM = ("input_linearity", "state_linearity")
# Blocks of rows in AllenNLP's AugmentedLstm: input gate, forget gate, new memory, output gate,
# highway gate; of the input also its projection. Ours: input gate, new memory, forget gate, output
# gate; apart from them highway gate and projection.
_BLOCKS = {
    "input_weight": (0, 2, 1, 3),
    "recurrent_weight": (0, 2, 1, 3),
    "bias": (0, 2, 1, 3),
    "highway_weight": (4, 5),
    "transform_weight": (4,),
    "highway_bias": (4, 5),
}


class UnknownWeightsError(Exception):
    """Weights that do not fit; the message names them."""


def translated_weights(
    pairs: Iterable[Pair], theirs: Mapping[str, Tensor], ours: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the weights of AllenNLP by our names.

    Args:
        pairs: AllenNLP's name and ours of each parameter.
        theirs: by AllenNLP's names.
        ours: the weights of the model as it is built, for names and shapes.

    Raises:
        UnknownWeightsError: some of ours are not among theirs or have another size, or some of
            theirs are not used.
    """
    sources: dict[str, str] = {}
    used = set[str]()
    for name, own in pairs:
        if name in theirs:
            used |= {name, name.replace(_STATE_BIAS, _INPUT_BIAS)}
            sources |= {own: name} if own else {}
    if left := sorted(name for name in theirs.keys() - used if not _NOT_READ.search(name)):
        raise UnknownWeightsError(f"its weights {listed(left)} have no counterpart here")
    if missing := sorted(ours.keys() - sources.keys()):
        raise UnknownWeightsError(f"it has no weights for {listed(missing)}")
    return {name: _fitted(name, sources[name], theirs, own) for name, own in ours.items()}


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    more = len(names) - _NUM_LISTED
    return ", ".join(names[:_NUM_LISTED]) + (f" and {more} more" if more > 0 else "")


def _fitted(name: str, source: str, theirs: Mapping[str, Tensor], own: Tensor) -> Tensor:
    tensor = theirs[source]
    if source.rpartition(".")[0].endswith(_OF_LSTM):
        tensor = _of_lstm(name.rpartition(".")[2], source, theirs, own)
    elif match := _HIGHWAY.search(name):
        # There the gate is that of the input, here that of what it becomes: 1 - g(x) = g(-x).
        transform, carry = tensor.chunk(2)
        tensor = transform if match[1] == "transform" else -carry
    elif (order := _columns(source, theirs)) is not None:
        tensor = tensor[:, order]
    if tensor.numel() != own.numel():
        raise UnknownWeightsError(
            f"its weights {source} of shape {list(theirs[source].shape)} do not fit {name} of "
            f"shape {list(own.shape)}"
        )
    return tensor.reshape(own.shape).to(own.dtype)


def _columns(source: str, theirs: Mapping[str, Tensor]) -> Tensor | None:
    has_spans = _SPAN_WIDTHS in theirs and _SPAN_ATTENTION in theirs
    return columns(
        source,
        theirs[source].shape[-1],
        features=theirs[_SPAN_WIDTHS].shape[1] if has_spans else 0,
        words=theirs[_SPAN_ATTENTION].shape[1] if has_spans else 0,
    )


def columns(source: str, number: int, *, features: int, words: int) -> Tensor | None:
    """Return the columns of a weight of AllenNLP in our order; None where the order is the same.

    Args:
        source: AllenNLP's name of the weight.
        number: of its columns.
        features: the dimension of a feature of a coreference model.
        words: the dimension of its embedder.
    """
    every = torch.arange(number)
    if source == _POOLED:
        # There the pools are max, min, mean and attention; here the mean is before the min.
        first, third, second, fourth = every.chunk(4)
        return torch.cat([first, second, third, fourth])
    if not (_OF_SPANS.search(source) or source == _OF_PAIRS):
        return None
    # There the vector of a span is start, end, width, head; here the head is before the width.
    num_spans = _NUM_SPANS_OF_PAIR if source == _OF_PAIRS else 1
    span_dim = (number - (features if source == _OF_PAIRS else 0)) // num_spans
    ends = span_dim - features - words
    spans, rest = every[: num_spans * span_dim].chunk(num_spans), every[num_spans * span_dim :]
    parts = [torch.split(span, [ends, features, words]) for span in spans]
    return torch.cat([*(each for a, b, c in parts for each in (a, c, b)), rest])


def input_columns(model: nn.Module) -> Tensor:
    """Return AllenNLP's columns of what reads the vectors of the words of a BCN, in our order.

    There its ELMo comes after all other embedders, here they are in the order of their names.
    """
    embedder = model.get_submodule("embedder")
    assert isinstance(embedder, TextEmbedder)
    dims: dict[str, int] = {}
    for name, each in embedder.token_embedders.items():
        assert isinstance(each, TokenEmbedder)
        dims[name] = each.output_dim
    theirs = sorted(dims, key="elmo".__eq__)
    every = torch.split(torch.arange(embedder.output_dim), [dims[name] for name in theirs])
    places = dict(zip(theirs, every, strict=True))
    return torch.cat([places[name] for name in dims])


def with_input_columns(theirs: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a BCN with ELMo at its input, with its columns in our order."""
    order, weight = input_columns(model), theirs.get(INPUT_WEIGHT)
    if weight is None or weight.shape[1:] != order.shape:
        return dict(theirs)  # which does not fit: an error with its shape follows
    return {**theirs, INPUT_WEIGHT: weight[:, order]}


def _of_lstm(kind: str, source: str, theirs: Mapping[str, Tensor], own: Tensor) -> Tensor:
    tensor = theirs[source]
    if source.endswith(_STATE_BIAS):
        bias = theirs.get(source.replace(_STATE_BIAS, _INPUT_BIAS))
        if bias is not None:
            tensor = bias + functional.pad(tensor, (0, len(bias) - len(tensor)))
    hidden = theirs[source.replace("input_linearity", "state_linearity")].shape[-1]
    if source.endswith("bias"):
        hidden = theirs[source.replace(".bias", ".weight")].shape[-1]
    blocks = torch.split(tensor, hidden)
    return torch.cat([blocks[index] for index in _BLOCKS[kind] if index < len(blocks)])
