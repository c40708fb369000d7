"""Pre-norm residual layers of one direction: a transformer, a GRU, a gated linear recurrence.

A layer maps x to x + d(F(norm(x))), where d is dropout: the input and the output are equally wide,
however wide F is inside. A transformer has two such sums (Xiong et al. 2020).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import no_autocast
from elmo_framework.nn.highway import Linear
from elmo_framework.nn.linear_recurrence import read_gated
from elmo_framework.nn.masking import vectors_at
from elmo_framework.nn.part import TensorPart
from elmo_framework.nn.windowed_attention import WindowedAttention

State: TypeAlias = tuple[Tensor, ...]
"""Tensors whose dimension 0 is the batch; zeros are the state before the first word."""

# The forget gate is open at first: 0.73, as in an LSTM whose forget bias is 1.
_FORGET_BIAS = 1.0


class ResidualLayer(TensorPart, ABC):
    """A layer that reads rows from their first word to their last."""

    @abstractmethod
    def forward(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        state: State | None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], State]:
        """Read rows.

        Args:
            words: the values at padding do not matter.
            mask: true at words; padding follows the words of a row.
            state: the state of each row; zeros when None.

        Returns:
            The outputs, and the state after the last word of each row.
        """


@final
class TransformerLayer(ResidualLayer):
    """Attention, then a feedforward network with GELU, each with its own residual sum.

    Args:
        dim: dimension of x.
        attention: reads normalized inputs; its output projection is drawn here.
        feedforward_dim: dimension inside the feedforward network.
        branch_scale: scale of the initial weights that write into the residual sum.
        dropout: dropout rate of what is added to the residual sum.
    """

    def __init__(
        self,
        dim: int,
        attention: WindowedAttention,
        *,
        feedforward_dim: int,
        branch_scale: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(dim), attention
        self.feedforward_norm = nn.LayerNorm(dim)
        self.expand, self.contract = Linear(dim, feedforward_dim), Linear(feedforward_dim, dim)
        self.dropout = nn.Dropout(dropout)
        initialize(attention.query)
        initialize(attention.key_value)
        initialize(attention.output, branch_scale)
        initialize(self.expand)
        initialize(self.contract, branch_scale)

    def forward(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        state: State | None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], State]:
        attended, state = self.attention(self.attention_norm(words), mask, state)
        words = words + self.dropout(attended)
        expanded = functional.gelu(self.expand(self.feedforward_norm(words)))
        return words + self.dropout(self.contract(expanded)), state


@final
class GruLayer(ResidualLayer):
    """A GRU (Cho et al. 2014), in PyTorch's form, whose state h is projected to the width of x.

    r, z = sigmoid(W x + U h); n = tanh(W_n x + r U_n h); h' = (1 - z) n + z h.

    Args:
        dim: dimension of x.
        cell_size: dimension of h.
        branch_scale: scale of the initial weights that write into the residual sum.
        dropout: dropout rate of what is added to the residual sum.
    """

    def __init__(self, dim: int, cell_size: int, *, branch_scale: float, dropout: float) -> None:
        super().__init__()
        self.norm, self.gru = nn.LayerNorm(dim), nn.GRU(dim, cell_size, batch_first=True)
        self.output, self.dropout = Linear(cell_size, dim), nn.Dropout(dropout)
        for name, weight in self.gru.named_parameters():
            nn.init.zeros_(weight) if "bias" in name else nn.init.xavier_uniform_(weight)
        initialize(self.output, branch_scale)

    def forward(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        state: State | None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], State]:
        inputs = self.norm(words)
        # The state stays in full precision; PyTorch's GRU wants all of its inputs in one type.
        with no_autocast(words):
            inputs = inputs.to(self.output.weight.dtype)
            (start,) = state or (inputs.new_zeros(len(inputs), self.gru.hidden_size),)
            hidden, _ = self.gru(inputs, start[None].contiguous())
        outputs = words + self.dropout(self.output(hidden))
        # Before the first word is `start`, so the state after n words is at position n.
        states = torch.cat([start[:, None], hidden], dim=1)
        return outputs, (vectors_at(states, mask.sum(dim=1)),)


@final
class LinearRecurrenceLayer(ResidualLayer):
    """A gated recurrence that is linear in its state, so that no product is inside its loop.

    f = sigmoid(W_f x + b_f); c' = f c + (1 - f) W_c x; F(x) = W (silu(W_o x) c').

    The recurrence is that of minGRU (Feng et al. 2024, equation 9) and of a QRNN of width 1
    (Bradbury et al. 2017, f-pooling without tanh), the output gate that of HGRN (Qin et al. 2023).

    Args:
        dim: dimension of x.
        cell_size: dimension of c.
        branch_scale: scale of the initial weights that write into the residual sum.
        dropout: dropout rate of what is added to the residual sum.
    """

    def __init__(self, dim: int, cell_size: int, *, branch_scale: float, dropout: float) -> None:
        super().__init__()
        self._cell_size = cell_size
        self.norm, self.gates = nn.LayerNorm(dim), Linear(dim, 3 * cell_size)
        self.output, self.dropout = Linear(cell_size, dim), nn.Dropout(dropout)
        initialize(self.gates)
        nn.init.constant_(self.gates.bias[:cell_size], _FORGET_BIAS)
        initialize(self.output, branch_scale)

    def forward(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        state: State | None,
    ) -> tuple[Float[Tensor, "batch tokens dim"], State]:
        # Steps first: the scan reads and writes whole steps.
        gates = self.gates(self.norm(words).transpose(0, 1)).to(words.dtype)
        (start,) = state or (words.new_zeros(len(words), self._cell_size),)
        # A closed gate at padding leaves the state as it is, so the last one is that of each row.
        outputs, end = read_gated(gates, mask.T, start)
        read = self.output(outputs).transpose(0, 1)
        return words + self.dropout(read), (end,)


def initialize(linear: nn.Linear, scale: float = 1.0) -> None:
    """Draw weights that keep the variance of their inputs, times the square of a scale."""
    nn.init.normal_(linear.weight, std=scale * linear.in_features**-0.5)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
