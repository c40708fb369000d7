"""Our weights under AllenNLP's names and in its layout: the inverse of `tensors`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from elmo_framework.compat.allennlp.parameter_names import Pair
from elmo_framework.compat.allennlp.tensors import columns

_OLDER = re.compile(
    r"(^|\.)_mention_pruner\.|\._similarity_function\.|layer_\d+\.(input|state)_linearity\."
)
"""Names before AllenNLP 1.0."""

_OF_LSTM = re.compile(r"(input|state)_linearity\.(weight|bias)$")
_HIGHWAY = re.compile(r"_highway_layer\._module\._layers\.\d+\.(weight|bias)$")
_VECTOR = "_matrix_attention._weight_vector"
_SENTINEL = re.compile(r"^span_extractor\._(start|end)_sentinel$")
_STATE_BIAS, _INPUT_BIAS = "state_linearity.bias", "input_linearity.bias"
_NUM_GATES, _NUM_OF_STATE = 4, 5
"""Rows of an LSTM, in units: its gates; of the state those, and the gate of its highway."""

_ATTENTION, _WIDTHS = "mentions.attention.weight", "mentions.width_embedding.weight"


def exported_weights(pairs: Iterable[Pair], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a model under the names of AllenNLP 2.10.

    Args:
        pairs: AllenNLP's name and ours of each parameter.
        ours: by our names.
    """
    sources: dict[str, list[str]] = {}
    for theirs, own in pairs:
        if not _OLDER.search(theirs):
            sources.setdefault(theirs, []).extend([own] if own else [])
    tensors = {name: [ours[own] for own in owns] for name, owns in sources.items()}
    weights = {name: _exported(name, each, ours) for name, each in tensors.items() if each}
    for name in sources.keys() - weights.keys():
        if name.endswith(_INPUT_BIAS):
            state = name.replace(_INPUT_BIAS, _STATE_BIAS)
            hidden = tensors[state][0].shape[1]
            weights[name] = weights[state]
            num_rows = min(len(weights[state]), _NUM_OF_STATE * hidden)
            weights[state] = torch.zeros(num_rows)
        else:
            weights[name] = torch.zeros(1)  # no softmax depends on it
    return {name: tensor.contiguous() for name, tensor in weights.items()}


def _exported(name: str, tensors: Sequence[Tensor], ours: Mapping[str, Tensor]) -> Tensor:
    if match := _OF_LSTM.search(name):
        rows = [each.flatten() if match[2] == "bias" else each for each in tensors]
        input_gate, memory, forget_gate, output_gate = rows[0].chunk(_NUM_GATES)
        return torch.cat([input_gate, forget_gate, memory, output_gate, *rows[1:]])
    if _HIGHWAY.search(name):
        # There the gate is that of the input, here that of what it becomes.
        carry, transform = tensors
        return torch.cat([transform, -carry])
    (tensor,) = tensors
    if name == _VECTOR:
        return tensor.flatten()
    if _SENTINEL.match(name):
        return tensor[None, None]
    order = columns(
        name,
        tensor.shape[-1] if tensor.ndim else 0,
        features=ours[_WIDTHS].shape[1] if _WIDTHS in ours else 0,
        words=ours[_ATTENTION].shape[1] if _ATTENTION in ours else 0,
    )
    return tensor.clone() if order is None else tensor[:, order.argsort()]
