"""PyTorch's recurrent networks on padded rows.

An LSTM whose products `highway_layer.py` computes reads packed rows. Otherwise the rows stay
padded on the CPU: PyTorch's backward pass for packed rows fills a matrix of the size of the whole
batch at each step, which takes time quadratic in their length. A batch with much padding is split
into groups of rows of similar length instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, is_traced, no_autocast, uses_cpu_code
from elmo_framework.kernels.product import has_bfloat16, has_onednn
from elmo_framework.nn.highway_layer import HighwayWeights, is_compiled, read_highway
from elmo_framework.nn.masking import vectors_at
from elmo_framework.nn.packing import Packing, reversed_rows

_FORGET_GATE = 1
"""Index of f in PyTorch's order of the gates of an LSTM, which is i, f, j, o."""

_MOST_GROUPS = 4
_STEP = 8
"""Overhead of a step, in the time of one row; each group of rows adds steps."""


def read_rows(
    network: nn.LSTM | nn.GRU,
    inputs: Float[Tensor, "batch tokens input_dim"],
    mask: Bool[Tensor, "batch tokens"],
) -> tuple[Float[Tensor, "batch tokens output_dim"], Float[Tensor, "batch output_dim"]]:
    """Read rows, in which padding follows the words; a row may have none.

    Returns:
        The outputs of the top layer at each word, zero at padding, and its final state in each
        direction, zero for a row without words.
    """
    if _is_compiled(network, inputs) and mask.any():
        return _read_packed(network, inputs, mask)
    # An accelerator would wait for the lengths, and the steps of short rows cost it no time.
    groups = _groups(mask) if uses_cpu_code(inputs) else [mask]
    if len(groups) == 1:
        return _read_layers(network, inputs, mask)
    return _read_groups(network, inputs, mask, groups)


def _is_compiled(network: nn.LSTM | nn.GRU, inputs: Tensor) -> bool:
    return (
        isinstance(network, nn.LSTM)
        and network.bias
        and not network.proj_size
        and autocast_dtype(inputs) is None
        and not is_traced()
        and is_compiled(network.all_weights[0][1], inputs)
    )


def _read_packed(network: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    packing = Packing.of(mask)
    words, directions = packing.pack(inputs), (False, True)[: 1 + network.bidirectional]
    for layer in range(network.num_layers):
        if layer and network.training:
            words = functional.dropout(words, network.dropout)
        outputs = [
            read_highway(
                words,
                _weights(network.all_weights[layer * len(directions) + is_backward]),
                None,
                packing.sizes,
                is_backward=is_backward,
                forget_gate=_FORGET_GATE,
            )
            for is_backward in directions
        ]
        words = torch.cat(outputs, dim=1)
    rows = packing.unpack(words)
    return rows, _last_states(rows, mask, network.hidden_size)


def _weights(weights: Sequence[Tensor]) -> HighwayWeights:
    """Return the weights of one direction of a layer, with gates in PyTorch's order."""
    of_words, of_hidden, *biases = weights
    return HighwayWeights(of_words, of_hidden, biases[0] + biases[1])


def _last_states(rows: Tensor, mask: Tensor, hidden_dim: int) -> Tensor:
    """Return the final state of both directions, zero for a row without words."""
    forward, backward = rows[:, :, :hidden_dim], rows[:, 0, hidden_dim:]
    return torch.cat([vectors_at(forward, _last_positions(mask)), backward], dim=1)


def _last_positions(mask: Tensor) -> Tensor:
    """Return the position of the last word of each row, 0 for a row without words."""
    return (mask.sum(dim=1) - 1).clamp(min=0)


def _groups(mask: Bool[Tensor, "batch tokens"]) -> Sequence[Int[Tensor, " rows"]]:
    """Group rows by length, longest first, such that reading takes the least time."""
    lengths, order = mask.sum(dim=1).sort(descending=True, stable=True)
    longest_first, batch = lengths.tolist(), len(mask)

    def time(number: int) -> int:
        size = max(1, math.ceil(batch / number))
        starts = range(0, batch, size)
        return sum(longest_first[at] * (min(size, batch - at) + _STEP) for at in starts)

    return order.chunk(min(range(1, _MOST_GROUPS + 1), key=time))


def _read_groups(
    network: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor, groups: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    outputs: list[Tensor] = []
    lasts: list[Tensor] = []
    for rows in groups:
        group_mask = mask.index_select(0, rows)
        longest = max(1, int(group_mask[0].sum()))
        group_inputs = inputs.index_select(0, rows)[:, :longest]
        output, last = _read_layers(network, group_inputs, group_mask[:, :longest])
        padding = 0, 0, 0, mask.shape[1] - longest
        outputs.append(functional.pad(output, padding))
        lasts.append(last)
    order = torch.cat([*groups]).argsort()
    return torch.cat(outputs).index_select(0, order), torch.cat(lasts).index_select(0, order)


def _read_layers(network: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    rows, ends = inputs, _last_positions(mask)
    lasts: list[Tensor] = []
    num_directions = 2 if network.bidirectional else 1
    for layer in range(network.num_layers):
        weights = network.all_weights[layer * num_directions :]
        if layer and network.training:
            rows = functional.dropout(rows, network.dropout)
        outputs = [_read_direction(network, weights[0], rows)]
        lasts = [vectors_at(outputs[0], ends)]
        if network.bidirectional:
            backward = _read_direction(network, weights[1], reversed_rows(rows, mask))
            outputs.append(reversed_rows(backward, mask))
            lasts.append(outputs[1][:, 0])
        rows = torch.cat(outputs, dim=2)
    last = torch.cat(lasts, dim=1)
    return rows * mask[:, :, None], last * mask.any(dim=1, keepdim=True)


def _read_direction(network: nn.LSTM | nn.GRU, weights: list[nn.Parameter], rows: Tensor) -> Tensor:
    """Return "batch tokens hidden" of one direction of a layer, read from left to right.

    Where autocast asks oneDNN for an LSTM in bfloat16 and the CPU has none, it is read in float32.
    """
    is_lstm = isinstance(network, nn.LSTM)
    if is_lstm and autocast_dtype(rows) and has_onednn(weights[0]) and not has_bfloat16():
        with no_autocast(rows):
            return _read_direction(network, weights, rows.to(weights[0].dtype))
    start = rows.new_zeros(1, len(rows), network.hidden_size)
    # has_biases, num_layers, dropout, train, bidirectional, batch_first
    options = network.bias, 1, 0.0, False, False, True
    if is_lstm:
        return torch.lstm(rows, (start, start), tuple(weights), *options)[0]
    return torch.gru(rows, start, tuple(weights), *options)[0]
