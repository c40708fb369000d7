"""PyTorch's LSTM with weights that do not change, each layer in one call to compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype
from elmo_framework.kernels.lstm_stack import LARGEST_WEIGHT, PackedLayer, PackedStack
from elmo_framework.kernels.packed_product import pack

_CELLS, _INPUTS = 16, 4
"""Packed weights have multiples of so many cells and inputs; zeros fill them up."""

_GATES = torch.tensor([0, 2, 1, 3])
"""The places of the compiled step's gates, i, j, f, o, among PyTorch's."""


@final
@dataclass(frozen=True)
class FrozenLstm:
    """The packed weights of an LSTM.

    Attributes:
        layers: both directions of each.
        input_dim: dimension of the input vectors.
        hidden_size: output dimension of one direction.
    """

    layers: Sequence[PackedStack]
    input_dim: int
    hidden_size: int

    @classmethod
    @torch.no_grad()
    def of(cls, network: nn.LSTM) -> FrozenLstm | None:
        """Pack weights; None for a network that compiled code does not support."""
        if network.proj_size:
            return None
        num_directions, stacks = 2 if network.bidirectional else 1, []
        for first in range(0, len(network.all_weights), num_directions):
            inputs = (num_directions, _CELLS) if first else (1, _INPUTS)
            directions = [
                _packed(weights, network.hidden_size, *inputs)
                for weights in network.all_weights[first : first + num_directions]
            ]
            layers = [[layer] for layer in directions if layer is not None]
            if len(layers) < num_directions:
                return None
            stacks.append(PackedStack(layers, has_skip=False, cell_clip=None, projection_clip=None))
        return cls(stacks, network.input_size, network.hidden_size)

    def read(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> tuple[Float[Tensor, "batch tokens output_dim"], Float[Tensor, "batch output_dim"]] | None:
        """Read rows, as `read_rows` does; None where compiled code cannot."""
        rows = functional.pad(inputs, (0, -self.input_dim % _INPUTS)).contiguous()
        if autocast_dtype(rows) or not all(layer.supports(rows) for layer in self.layers):
            return None
        states: list[list[tuple[Tensor, Tensor]]] = []
        for layer in self.layers:
            hidden, cell = layer.directions[0][0].sizes
            states = [
                [(rows.new_zeros(len(rows), hidden), rows.new_zeros(len(rows), cell))]
                for _ in layer.directions
            ]
            outputs = rows.new_zeros(1, *mask.shape, len(states) * hidden)
            layer.read(rows, mask, states, outputs)
            rows = outputs[0]
        size = self.hidden_size
        last = torch.cat([hidden[:, :size] for ((hidden, _),) in states], dim=1)
        parts = rows.view(*mask.shape, len(states), rows.shape[2] // len(states))
        return parts[..., :size].flatten(2), last


def _packed(
    weights: Sequence[Tensor], hidden_size: int, parts: int, multiple: int
) -> PackedLayer | None:
    """Pack one direction of a layer; the parts of its inputs are padded to a multiple."""
    input_weight, recurrent_weight, *biases = weights
    bias = torch.stack(biases).sum(dim=0) if biases else input_weight.new_zeros(4 * hidden_size)
    padded = [
        _padded(input_weight, hidden_size, parts, multiple),
        _padded(recurrent_weight, hidden_size, 1, _CELLS),
    ]
    if max(weight.numel() for weight in padded) > LARGEST_WEIGHT:
        return None
    inputs = pack(padded[0], _padded(bias[:, None], hidden_size, 1, 1).flatten(), "float32")
    recurrent = pack(padded[1], None, "float32")
    if inputs is None or recurrent is None:
        return None
    return PackedLayer(inputs, recurrent, None)


def _padded(weight: Tensor, hidden_size: int, parts: int, multiple: int) -> Tensor:
    """Order the gates, and add zeros after the cells of each gate and after each part of inputs."""
    by_part = weight.view(4, hidden_size, parts, -1)[_GATES.to(weight.device)]
    added = 0, -by_part.shape[3] % multiple, 0, 0, 0, -hidden_size % _CELLS
    return functional.pad(by_part, added).flatten(2).flatten(0, 1)
