"""Unidirectional LSTM layer with a highway connection and a custom backward pass.

As in `lstm_layer.py`, computations without state cover all words at once: the products with x
before the loop over steps, the gradients of the weights after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, no_autocast
from elmo_framework.kernels.highway_step import highway_step, highway_step_backward
from elmo_framework.kernels.product import linear, prepared, product, rounded_up, weight_gradient
from elmo_framework.nn.packing import reversed_rows
from elmo_framework.nn.part import Gates, TensorPart

_Steps: TypeAlias = list[tuple[slice, slice]]
"""The words of each step and of the following one, which is empty for the last."""


class HighwayLstm(TensorPart):
    """An LSTM whose output is mixed with a product of its input (He et al. 2017, section 2.1).

    i, j, f, o = W x + U (m * h) + b;  c' = sigmoid(f) c + sigmoid(i) tanh(j);
    t = sigmoid(W_t x + U_t (m * h) + b_t);
    h' = t * sigmoid(o) tanh(c') + (1 - t) * W_k x,

    where m is a row's dropout mask, the same at each step (Gal and Ghahramani 2016). Blocks of
    weights are initialized orthonormal, b of f to 1, the other biases to 0.

    Args:
        input_dim: dimension of x.
        hidden_dim: dimension of h and c.
        is_backward: whether rows are read from their ends.
        recurrent_dropout: dropout rate of h.
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
        use_highway: bool = True,
        has_carry_bias: bool = True,
    ) -> None:
        super().__init__()
        self.is_backward, self._dropout = is_backward, recurrent_dropout
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
        if not sizes:
            return words.new_zeros(0, self._hidden_dim)
        steps = _steps(sizes, is_backward=is_backward)
        weights, mask = self._weights(), self._mask(sizes[0])
        if torch.is_grad_enabled():
            outputs: Tensor = _HighwayLstmFunction.apply(  # type: ignore[no-untyped-call]
                words, *weights, mask, steps
            )
            return outputs
        return _read(words, weights, mask, steps)[0]

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

    def _weights(self) -> _Weights:
        bias = self.bias.flatten()
        if self.highway_weight is None:
            return _Weights(self.input_weight, self.recurrent_weight, bias, None, None)
        assert self.highway_bias is not None
        assert self.transform_weight is not None
        transform, carry = self.highway_weight.chunk(2)
        return _Weights(
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


class _Weights(NamedTuple):
    """The weights of a layer, concatenated where they share a product.

    Attributes:
        of_words: "gates input": W, and W_t with a highway.
        of_hidden: "gates hidden": U, and U_t with a highway.
        bias: " gates": b, and b_t with a highway.
        carry: "hidden input": W_k; None without a highway.
        carry_bias: " hidden": its bias; None without one.
    """

    of_words: Tensor
    of_hidden: Tensor
    bias: Tensor
    carry: Tensor | None
    carry_bias: Tensor | None


_Saved: TypeAlias = tuple[Tensor, Tensor | None, Tensor, Tensor]
"""Values of each word that the backward pass needs:

* "words gates": the activations of i, j, f, o and, with a highway, t.
* "words hidden": W_k x; None without a highway.
* "words hidden": c before the word.
* "padded_words hidden": h before the word, after dropout; padded with zeros to the number of rows
  of an efficient product (`rounded_up`).
"""


def _steps(sizes: Sequence[int], *, is_backward: bool) -> _Steps:
    ends = accumulate(sizes)
    words = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    steps = words[::-1] if is_backward else words
    return list(zip(steps, [*steps[1:], slice(0, 0)], strict=True))


def _read(
    words: Tensor, weights: _Weights, mask: Tensor | None, steps: _Steps
) -> tuple[Tensor, _Saved]:
    """Return h at each word, and the values for the backward pass."""
    # The recurrence has the precision of the weights, also in mixed precision.
    wide, hidden_dim = weights.bias.dtype, weights.of_hidden.shape[1]
    gates = linear(words, weights.of_words, weights.bias).to(wide)
    carried = None
    if weights.carry is not None:
        carried = linear(words, weights.carry, weights.carry_bias).to(wide)
    memory = gates.new_zeros(len(words), hidden_dim)
    hidden = gates.new_zeros(rounded_up(len(words)), hidden_dim)
    outputs = torch.empty_like(memory)
    with no_autocast(gates):
        multiplied = prepared(weights.of_hidden)
        for now, later in steps:
            # Reading forward, rows end at a step; backward, rows begin there, with zeros as state.
            continuing = slice(later.start, min(later.stop, later.start + now.stop - now.start))
            highway_step(
                multiplied(hidden[now]),
                gates[now],
                None if carried is None else carried[now],
                mask,
                memory[now],
                output=outputs[now],
                memory=memory[continuing],
                hidden=hidden[continuing],
            )
    return outputs, (gates, carried, memory, hidden)


class _HighwayLstmFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, *arguments: Any) -> Tensor:
        *tensors, mask, steps = arguments
        weights = _Weights(*tensors)
        outputs, saved = _read(words, weights, mask, steps)
        ctx.type = autocast_dtype(words) or words.dtype
        ctx.steps, ctx.has_carry_bias = steps, weights.carry_bias is not None
        ctx.save_for_backward(
            words, weights.of_words, weights.of_hidden, weights.carry, mask, *saved
        )
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        words, input_weight, recurrent_weight, carry, mask = ctx.saved_tensors[:5]
        saved = ctx.saved_tensors[5:]
        of_sums, of_carried = _read_back(of_outputs, saved, recurrent_weight, mask, ctx.steps)
        of_recurrent = weight_gradient(of_sums, saved[-1])
        of_words, of_input = _back(of_sums, words, input_weight, ctx.type)
        of_bias, of_carry, of_carry_bias = of_sums.sum(dim=0), None, None
        if of_carried is not None:
            of_carried_words, of_carry = _back(of_carried, words, carry, ctx.type)
            of_words += of_carried_words
            of_carry_bias = of_carried.sum(dim=0) if ctx.has_carry_bias else None
        of_weights = _Weights(of_input, of_recurrent, of_bias, of_carry, of_carry_bias)
        return of_words, *of_weights, None, None


def _read_back(
    of_outputs: Tensor,
    saved: _Saved,
    recurrent_weight: Tensor,
    mask: Tensor | None,
    steps: _Steps,
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of the sums and of W_k x, padded like `hidden`."""
    gates, carried, memory, hidden = saved
    of_outputs = of_outputs.clone(memory_format=torch.contiguous_format)
    num_words, hidden_dim = of_outputs.shape
    of_sums = of_outputs.new_empty(len(hidden), len(recurrent_weight))
    of_carried = None if carried is None else torch.empty_like(hidden)
    for gradient in (of_sums, of_carried):
        if gradient is not None:
            gradient[num_words:] = 0
    multiplied = prepared(recurrent_weight.T)
    num_rows = max(now.stop - now.start for now, _ in steps)
    of_memory = of_outputs.new_zeros(num_rows, hidden_dim)
    of_hidden = of_outputs.new_zeros(0, hidden_dim)
    for now, _ in reversed(steps):
        rows = now.stop - now.start
        highway_step_backward(
            gates[now],
            None if carried is None else carried[now],
            mask,
            memory[now],
            of_hidden[:rows],
            of_output=of_outputs[now],
            of_memory=of_memory[:rows],
            of_sums=of_sums[now],
            of_carried=None if of_carried is None else of_carried[now],
        )
        of_hidden = multiplied(of_sums[now])
    return of_sums, of_carried


def _back(
    gradient: Tensor, words: Tensor, weight: Tensor, type_: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the words and of the weight of a product in precision `type_`."""
    narrow, num_padding = gradient.to(type_), len(gradient) - len(words)
    of_words = product(narrow, weight.to(type_).T)[: len(words)]
    rows = functional.pad(words.to(type_), (0, 0, 0, num_padding))
    of_weight = weight_gradient(narrow, rows)
    return of_words.to(words.dtype), of_weight.to(weight.dtype)


def _orthonormal(num_blocks: int, num_rows: int, num_columns: int) -> nn.Parameter:
    weight = torch.empty(num_blocks * num_rows, num_columns)
    for block in weight.view(num_blocks, num_rows, num_columns):
        nn.init.orthogonal_(block)
    return nn.Parameter(weight)
