"""One step of an LSTM whose output is projected and whose values are clipped."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional


class LstmState(NamedTuple):
    """What an LSTM passes from step to step."""

    hidden: Float[Tensor, "batch hidden"]
    memory: Float[Tensor, "batch cell"]


class ProjectedLstmCell(nn.Module):
    """An LSTM cell with a smaller output than memory (Sak et al. 2014).

    i, j, f, o = W_input x + W_recurrent h + b;
    c' = clip(sigmoid(f + 1) c + sigmoid(i) tanh(j));
    h' = clip(W_projection (sigmoid(o) tanh(c'))).

    The gates stand in TensorFlow's order, and the 1 is no part of b, so that the parameters are
    those of a bilm-tf file, transposed.

    Args:
        input_dim: the width of x.
        cell_size: the width of c.
        projection_dim: the width of h; without it h is as wide as c and is not clipped.
        cell_clip: the largest magnitude in c.
        projection_clip: the largest magnitude in h.
    """

    def __init__(
        self,
        input_dim: int,
        cell_size: int,
        *,
        projection_dim: int | None = None,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
    ) -> None:
        super().__init__()
        self.cell_size, self.output_dim = cell_size, projection_dim or cell_size
        self._cell_clip, self._projection_clip = cell_clip, projection_clip
        self.input_weight = nn.Parameter(torch.empty(4 * cell_size, input_dim))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * cell_size, self.output_dim))
        self.bias = nn.Parameter(torch.zeros(4 * cell_size))
        self.projection_weight = (
            None if projection_dim is None else nn.Parameter(torch.empty(projection_dim, cell_size))
        )
        self._initialize()

    def _initialize(self) -> None:
        # In TensorFlow both halves are one matrix, and Glorot's bound is that of the whole.
        fan_in = self.input_weight.shape[1] + self.output_dim
        bound = (6 / (fan_in + 4 * self.cell_size)) ** 0.5
        nn.init.uniform_(self.input_weight, -bound, bound)
        nn.init.uniform_(self.recurrent_weight, -bound, bound)
        if self.projection_weight is not None:
            nn.init.xavier_uniform_(self.projection_weight)

    def zero_state(self, num_rows: int) -> LstmState:
        """Return the state before the first step."""
        zeros = self.bias.new_zeros
        return LstmState(zeros(num_rows, self.output_dim), zeros(num_rows, self.cell_size))

    def input_gates(self, inputs: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch gates"]:
        """Return the part of the gates that no state has a part in, for any number of steps."""
        size = self.cell_size
        # Added here, once for all steps, and not by every step to its forget gate.
        forget_offset = functional.pad(self.bias.new_ones(size), (2 * size, size))
        return functional.linear(inputs, self.input_weight, self.bias + forget_offset)

    def forward(self, input_gates: Float[Tensor, "batch gates"], state: LstmState) -> LstmState:
        """Make one step."""
        gates = torch.addmm(input_gates, state.hidden, self.recurrent_weight.T)
        input_gate, candidate, forget_gate, output_gate = gates.chunk(4, dim=1)
        kept = torch.sigmoid(forget_gate) * state.memory
        memory = kept + torch.sigmoid(input_gate) * torch.tanh(candidate)
        memory = _clipped(memory, self._cell_clip)
        return LstmState(self._project(torch.sigmoid(output_gate) * torch.tanh(memory)), memory)

    def _project(self, outputs: Float[Tensor, "batch cell"]) -> Float[Tensor, "batch hidden"]:
        if self.projection_weight is None:
            return outputs
        projected = functional.linear(outputs, self.projection_weight)
        return _clipped(projected, self._projection_clip)


def _clipped(values: Float[Tensor, "*shape"], limit: float | None) -> Float[Tensor, "*shape"]:
    return values if limit is None else values.clamp(-limit, limit)
