"""One LSTM layer with a highway around it, in one direction, with its own backward pass.

As in `lstm_layer.py`, what needs no state is done for all words at once: the products with x
before the loop over steps, the gradients of the weights after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from elmo_framework.nn.lstm_step import step, step_backward
from elmo_framework.nn.product import Product, linear, prepared, weight_gradient


class Path(NamedTuple):
    """In which order a layer takes the steps of packed rows (`Packing`).

    Attributes:
        sizes: how many rows are alive at each step; never growing.
        is_backward: whether the rows are read from their ends.
    """

    sizes: tuple[int, ...]
    is_backward: bool

    def order(self) -> list[int]:
        """Return the numbers of the steps as they are taken."""
        steps = range(len(self.sizes))
        return list(reversed(steps) if self.is_backward else steps)


class HighwayLstm(nn.Module):
    """An LSTM whose output is mixed with a product of its input (He et al. 2017, section 2.1).

    i, j, f, o = W x + U (m * h) + b;  c' = sigmoid(f) c + sigmoid(i) tanh(j);
    t = sigmoid(W_t x + U_t (m * h) + b_t);
    h' = t * sigmoid(o) tanh(c') + (1 - t) * W_k x,

    where m is a row's dropout mask, the same at each step (Gal and Ghahramani 2016). Blocks of
    weights start orthonormal, b of f at 1, the other biases at 0.

    Args:
        input_dim: the width of x.
        hidden_dim: the width of h and c.
        is_backward: whether the rows are read from their ends.
        recurrent_dropout: the share of h that is dropped in training.
        use_highway: whether there is a highway; without one, t is 1.
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
            words: step by step.
            sizes: how many rows are alive at each step.
        """
        if not sizes:
            return words.new_zeros(0, self._hidden_dim)
        # The recurrence keeps the precision of the weights, whatever that of the products is.
        wide = self.bias.dtype
        gates = linear(words, self.input_weight, self.bias.flatten()).to(wide)
        highway = None
        if self.highway_weight is not None:
            highway = linear(words, self.highway_weight, self._bias_of_highway()).to(wide)
        path = Path(tuple(sizes), self.is_backward)
        weights = self.recurrent_weight, self.transform_weight
        mask = self._mask(sizes[0])
        with torch.autocast(gates.device.type, enabled=False):
            if torch.is_grad_enabled():
                outputs: Tensor = _Layer.apply(  # type: ignore[no-untyped-call]
                    gates, highway, *weights, mask, path
                )
                return outputs
            inputs, products = _cut(gates, highway, path), _Products.of(*weights)
            taken = _take_steps(inputs, products, mask, path, keep=False)
            return _in_order([held.output for held in taken], path)

    def _bias_of_highway(self) -> Float[Tensor, " highway"]:
        assert self.highway_bias is not None
        bias = self.highway_bias.flatten()
        return functional.pad(bias, (0, 2 * self._hidden_dim - len(bias)))

    def _mask(self, num_rows: int) -> Float[Tensor, "rows hidden"] | None:
        if not (self.training and self._dropout):
            return None
        kept = self.bias.new_ones(num_rows, self._hidden_dim)
        return functional.dropout(kept, self._dropout)


class _Inputs(NamedTuple):
    """What a step is given, or its gradients.

    Attributes:
        gates: "rows 4*hidden": W x + b.
        highway: "rows hidden" twice: W_t x + b_t and W_k x; None without highway.
    """

    gates: Tensor
    highway: tuple[Tensor, Tensor] | None


class _Step(NamedTuple):
    """What a step leaves for the backward pass.

    Attributes:
        number: of the step.
        inputs: what it was given.
        hidden: h before, dropped out.
        memory: c before.
        gates: the activations of i, j, f and o.
        transform: the activation of t; None without highway.
        memory_after: c.
        cell_output: sigmoid(o) tanh(c).
        output: h.
    """

    number: int
    inputs: _Inputs
    hidden: Tensor
    memory: Tensor
    gates: Tensor
    transform: Tensor | None
    memory_after: Tensor
    cell_output: Tensor
    output: Tensor


class _Products(NamedTuple):
    """The products with h, or with the gradients of what they gave."""

    gates: Product
    transform: Product | None

    @classmethod
    def of(cls, recurrent: Tensor, transform: Tensor | None) -> _Products:
        """Prepare U and U_t."""
        return cls(prepared(recurrent), None if transform is None else prepared(transform))


def _take_steps(
    inputs: Sequence[_Inputs], products: _Products, mask: Tensor | None, path: Path, *, keep: bool
) -> Iterator[_Step]:
    """Read rows step by step; without `keep`, the activations of the gates are not kept."""
    hidden = memory = inputs[0].gates.new_zeros(0, inputs[0].gates.shape[1] // 4)
    for number in path.order():
        given, rows = inputs[number], path.sizes[number]
        # Rows end on the way forward, and begin on the way back.
        hidden, memory = _fitted(hidden, rows), _fitted(memory, rows)
        if mask is not None:
            hidden = hidden * mask[:rows]
        sums = products.gates(hidden)
        after, cell_output = step(sums, given.gates, memory, cell_clip=None, keep=keep)
        transform, output = None, cell_output
        if given.highway is not None and products.transform is not None:
            of_input, carried = given.highway
            transform = products.transform(hidden).add_(of_input).sigmoid_()
            output = torch.lerp(carried, cell_output, transform)
        yield _Step(number, given, hidden, memory, sums, transform, after, cell_output, output)
        hidden, memory = output, after


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        highway: Tensor | None,
        recurrent_weight: Tensor,
        transform_weight: Tensor | None,
        mask: Tensor | None,
        path: Path,
    ) -> Tensor:
        ctx.save_for_backward(recurrent_weight, transform_weight, mask)
        ctx.path, ctx.has_highway = path, highway is not None
        products = _Products.of(recurrent_weight, transform_weight)
        inputs = _cut(gates, highway, path)
        ctx.taken = list(_take_steps(inputs, products, mask, path, keep=True))
        return _in_order([held.output for held in ctx.taken], path)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor) -> tuple[Tensor | None, ...]:
        recurrent_weight, transform_weight, mask = ctx.saved_tensors
        num_words, hidden_dim = of_outputs.shape
        of_gates = of_outputs.new_empty(num_words, 4 * hidden_dim)
        of_highway = of_outputs.new_empty(num_words, 2 * hidden_dim) if ctx.has_highway else None
        turned = None if transform_weight is None else transform_weight.T
        products = _Products.of(recurrent_weight.T, turned)
        of_steps = torch.split(of_outputs, list(ctx.path.sizes))
        of_inputs = _cut(of_gates, of_highway, ctx.path)
        of_hidden = of_memory = of_outputs.new_zeros(0, hidden_dim)
        for held in reversed(ctx.taken):
            rows = len(held.output)
            of_output = of_steps[held.number] + _fitted(of_hidden, rows)
            of_memory = _fitted(of_memory, rows)
            of_hidden = _step_back(held, of_output, of_memory, of_inputs[held.number], products)
            if mask is not None:
                of_hidden *= mask[:rows]
        hidden = _in_order([held.hidden for held in ctx.taken], ctx.path)
        of_recurrent = weight_gradient(of_gates, hidden)
        of_transform = (
            None if of_highway is None else weight_gradient(of_highway[:, :hidden_dim], hidden)
        )
        return of_gates, of_highway, of_recurrent, of_transform, None, None


def _step_back(
    held: _Step, of_output: Tensor, of_memory: Tensor, of_inputs: _Inputs, products: _Products
) -> Tensor:
    """Return the gradient of h before; fill those of the inputs, and pass on that of c in place."""
    of_cell = of_output if held.transform is None else of_output * held.transform
    states = held.memory, held.memory_after, of_cell, of_memory
    step_backward(held.gates, *states, cell_clip=None, of_sums=of_inputs.gates)
    of_hidden = products.gates(of_inputs.gates)
    if held.inputs.highway is not None and of_inputs.highway is not None:
        assert held.transform is not None
        assert products.transform is not None
        of_transform, of_carried = of_inputs.highway
        torch.sub(of_output, of_cell, out=of_carried)
        slope = (held.cell_output - held.inputs.highway[1]).mul_(1 - held.transform)
        torch.mul(of_cell, slope, out=of_transform)
        of_hidden += products.transform(of_transform)
    return of_hidden


def _cut(gates: Tensor, highway: Tensor | None, path: Path) -> list[_Inputs]:
    """Cut what belongs to words into steps."""
    sizes = list(path.sizes)
    of_gates = torch.split(gates, sizes)
    if highway is None:
        return [_Inputs(each, None) for each in of_gates]
    transforms, carried = (torch.split(half, sizes) for half in highway.chunk(2, dim=1))
    pairs = zip(transforms, carried, strict=True)
    return [_Inputs(each, pair) for each, pair in zip(of_gates, pairs, strict=True)]


def _fitted(state: Tensor, num_rows: int) -> Tensor:
    """Return the first rows of a state, with rows of zeros where there are too few."""
    missing = num_rows - len(state)
    return functional.pad(state, (0, 0, 0, missing)) if missing > 0 else state[:num_rows]


def _in_order(taken: list[Tensor], path: Path) -> Tensor:
    """Join what belongs to steps as they were taken."""
    return torch.cat(taken[::-1] if path.is_backward else taken)


def _orthonormal(num_blocks: int, num_rows: int, num_columns: int) -> nn.Parameter:
    blocks = [nn.init.orthogonal_(torch.empty(num_rows, num_columns)) for _ in range(num_blocks)]
    return nn.Parameter(torch.cat(blocks))
