"""Unidirectional LSTM layer with a highway connection."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.nn.highway_layer import HighwayWeights, read_highway
from elmo_framework.nn.packing import reversed_rows
from elmo_framework.nn.part import Gates, TensorPart


class HighwayLstm(TensorPart):
    """An LSTM whose output is mixed with a product of its input (He et al. 2017, section 2).

    i, j, f, o = W x + U h + b;  c' = sigmoid(f) c + sigmoid(i) tanh(j);
    t = sigmoid(W_t x + U_t h + b_t);
    h' = m * (t * sigmoid(o) tanh(c') + (1 - t) * W_k x),

    where m is a row's dropout mask, the same at each step (Gal and Ghahramani 2016). The output is
    h', so the next step and the next layer read the same masked values; or it is h' without m, and
    only the next step reads h' with m. Blocks of weights are initialized orthonormal, b of f to 1,
    the other biases to 0.

    Args:
        input_dim: dimension of x.
        hidden_dim: dimension of h and c.
        is_backward: whether rows are read from their ends.
        recurrent_dropout: dropout rate of h.
        masks_output: whether the output is masked too.
        use_highway: whether there is a highway connection; without one, t is 1.
        has_carry_bias: whether W_k x has a bias.
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        *,
        is_backward: bool = False,
        recurrent_dropout: float = 0.0,
        masks_output: bool = True,
        use_highway: bool = True,
        has_carry_bias: bool = True,
    ) -> None:
        super().__init__()
        self.is_backward, self._dropout = is_backward, recurrent_dropout
        self._masks_output = masks_output
        self._hidden_dim = hidden_dim
        self.input_weight = _orthonormal(4, hidden_dim, input_dim)
        self.recurrent_weight = _orthonormal(4, hidden_dim, hidden_dim)
        self.bias = nn.Parameter(torch.zeros(4, hidden_dim))
        with torch.no_grad():
            self.bias[2] = 1
        self.highway_weight = _orthonormal(2, hidden_dim, input_dim) if use_highway else None
        self.transform_weight = _orthonormal(1, hidden_dim, hidden_dim) if use_highway else None
        num_biases = 2 if has_carry_bias else 1
        self.highway_bias = (
            nn.Parameter(torch.zeros(num_biases, hidden_dim)) if use_highway else None
        )

    def forward(
        self, words: Float[Tensor, "words input"], sizes: Sequence[int]
    ) -> Float[Tensor, "words hidden"]:
        """Read packed rows (`Packing`).

        Args:
            words: word vectors, step by step.
            sizes: number of unfinished rows at each step.
        """
        return self._outputs(words, sizes, is_backward=self.is_backward)

    def read_rows(
        self, rows: Float[Tensor, "batch tokens input"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens hidden"]:
        """Read padded rows; nothing waits for their lengths.

        Args:
            rows: word vectors, which padding follows.
            mask: true at words.

        Returns:
            The outputs, zero at padding.
        """
        num_rows, num_tokens = mask.shape
        ordered = reversed_rows(rows, mask) if self.is_backward else rows
        words = ordered.transpose(0, 1).flatten(0, 1)
        outputs = self._outputs(words, [num_rows] * num_tokens, is_backward=False)
        outputs = outputs.view(num_tokens, num_rows, self._hidden_dim).transpose(0, 1)
        return (reversed_rows(outputs, mask) if self.is_backward else outputs) * mask[:, :, None]

    def _outputs(self, words: Tensor, sizes: Sequence[int], *, is_backward: bool) -> Tensor:
        mask = self._mask(sizes[0]) if sizes else None
        outputs = read_highway(words, self._weights(), mask, sizes, is_backward=is_backward)
        # `read_highway` masks what the next step reads, and returns the outputs without the mask.
        if mask is None or not self._masks_output:
            return outputs
        return outputs * torch.cat([mask[:size] for size in sizes])

    def parameter_gates(self, name: str) -> Gates | None:
        match name:
            case "input_weight" | "recurrent_weight":
                return Gates(4, forget=2)
            case "bias":
                return Gates(4, forget=2, is_bias=True)
            case "highway_weight":
                return Gates(2, forget=None)
            case "highway_bias" if self.highway_bias is not None:
                return Gates(len(self.highway_bias), forget=None, is_bias=True)
        return Gates(1, forget=None)

    def _weights(self) -> HighwayWeights:
        bias = self.bias.flatten()
        if self.highway_weight is None:
            return HighwayWeights(self.input_weight, self.recurrent_weight, bias)
        assert self.highway_bias is not None
        assert self.transform_weight is not None
        transform, carry = self.highway_weight.chunk(2)
        return HighwayWeights(
            of_words=torch.cat([self.input_weight, transform]),
            of_hidden=torch.cat([self.recurrent_weight, self.transform_weight]),
            bias=torch.cat([bias, self.highway_bias[0]]),
            carry=carry,
            carry_bias=self.highway_bias[1] if len(self.highway_bias) == 2 else None,
        )

    def _mask(self, num_rows: int) -> Float[Tensor, "rows hidden"] | None:
        if not (self.training and self._dropout):
            return None
        ones = self.bias.new_ones(num_rows, self._hidden_dim)
        return functional.dropout(ones, self._dropout)


def _orthonormal(num_blocks: int, num_rows: int, num_columns: int) -> nn.Parameter:
    weight = torch.empty(num_blocks * num_rows, num_columns)
    for block in weight.view(num_blocks, num_rows, num_columns):
        nn.init.orthogonal_(block)
    return nn.Parameter(weight)
