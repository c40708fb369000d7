"""A highway LSTM layer in one call equals plain steps, in values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import blocked_product
from elmo_framework.kernels.highway_layer import CompiledHighwayLayer
from elmo_framework.nn import highway_layer
from elmo_framework.nn.highway_layer import HighwayWeights, read_highway

pytestmark = pytest.mark.skipif(
    "float32" not in blocked_product._fast_precisions(), reason="needs a C compiler and AVX-512"
)
INPUT, HIDDEN, NUM_ROWS = 9, 21, 5
DIRECTIONS = pytest.mark.parametrize("is_backward", [False, True])
ALL_SIZES = pytest.mark.parametrize("sizes", [[5, 5, 5], [5, 3, 3, 1], [2], [1, 1]], ids=str)


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_product, "_SMALLEST", 0)


def random(*shape: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return (scale * torch.randn(shape, generator=generator)).requires_grad_()


def weights(*, has_highway: bool) -> HighwayWeights:
    width = (5 if has_highway else 4) * HIDDEN
    plain = random(width, INPUT), random(width, HIDDEN, scale=0.3), random(width)
    return HighwayWeights(*plain, *((random(HIDDEN, INPUT), random(HIDDEN)) * has_highway))


def plain(
    words: Tensor, of: HighwayWeights, mask: Tensor | None, sizes: list[int], *, is_backward: bool
) -> Tensor:
    """Read row by row and word by word, by PyTorch's own differentiation."""
    firsts = [sum(sizes[:step]) for step in range(len(sizes))]
    outputs: dict[int, Tensor] = {}
    for row in range(sizes[0]):
        places = [first + row for first, size in zip(firsts, sizes, strict=True) if row < size]
        hidden = memory = words.new_zeros(HIDDEN)
        for place in reversed(places) if is_backward else places:
            kept = hidden if mask is None else hidden * mask[row]
            i, j, f, o, *t = (of.of_words @ words[place] + of.of_hidden @ kept + of.bias).split(
                HIDDEN
            )
            memory = f.sigmoid() * memory + i.sigmoid() * j.tanh()
            hidden = o.sigmoid() * memory.tanh()
            if of.carry is not None and of.carry_bias is not None:
                carried = of.carry @ words[place] + of.carry_bias
                hidden = t[0].sigmoid() * hidden + (1 - t[0].sigmoid()) * carried
            outputs[place] = hidden
    return torch.stack([outputs[place] for place in range(len(words))])


@DIRECTIONS
@ALL_SIZES
@pytest.mark.parametrize("has_highway", [False, True])
@pytest.mark.parametrize("has_mask", [False, True])
def test_one_call_equals_plain_steps_in_float64(
    sizes: list[int], has_highway: bool, has_mask: bool, is_backward: bool
) -> None:
    words, of = random(sum(sizes), INPUT), weights(has_highway=has_highway)
    mask = random(NUM_ROWS, HIDDEN).detach() if has_mask else None
    leaves = [words, *(each for each in of if each is not None)]
    of_outputs = random(sum(sizes), HIDDEN).detach()
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]

    outputs = read_highway(words, of, mask, sizes, is_backward=is_backward)
    found = outputs, *torch.autograd.grad(outputs, leaves, of_outputs)
    wide = None if mask is None else mask.double()
    expected = plain(exact[0], HighwayWeights(*exact[1:]), wide, sizes, is_backward=is_backward)
    gradients = torch.autograd.grad(expected, exact, of_outputs.double())

    for one, other in zip(found, (expected, *gradients), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=2e-5)


@DIRECTIONS
@ALL_SIZES
def test_values_do_not_depend_on_memory_or_gradients(sizes: list[int], is_backward: bool) -> None:
    """What an earlier call left in memory, NaN, is never read."""
    words, of = random(sum(sizes), INPUT), weights(has_highway=True)
    with_gradients = read_highway(words, of, None, sizes, is_backward=is_backward)
    with torch.no_grad():
        for width in (HIDDEN, 3 * HIDDEN, 5 * HIDDEN):
            torch.full((sum(sizes), width), torch.nan)
        without = read_highway(words, of, None, sizes, is_backward=is_backward)
    assert torch.equal(with_gradients, without)


@DIRECTIONS
def test_a_row_does_not_depend_on_others(is_backward: bool) -> None:
    layer = CompiledHighwayLayer(random(4 * HIDDEN, HIDDEN), (5, 5, 5), is_backward)
    alone = CompiledHighwayLayer(layer.recurrent_weight, (1, 1, 1), is_backward)
    gates = random(15, 4 * HIDDEN).detach()
    first_row = gates[::5].clone()
    outputs, _, _ = layer.forward(gates, None, None)
    assert torch.equal(outputs[::5], alone.forward(first_row, None, None)[0])


@DIRECTIONS
def test_tensors_of_other_shapes_are_refused(is_backward: bool) -> None:
    layer = CompiledHighwayLayer(random(4 * HIDDEN, HIDDEN), (5, 5, 5), is_backward)
    for gates, mask in (
        (random(10, 4 * HIDDEN), None),
        (random(15, 3 * HIDDEN), None),
        (random(15, 4 * HIDDEN), random(2, HIDDEN)),
    ):
        with pytest.raises(ValueError, match=r"has the shape \(.*\); expected"):
            layer.forward(gates.detach(), None, mask)


def test_gradients_that_are_not_needed_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    products: list[tuple[int, ...]] = []
    product = highway_layer.training_product

    def counted(rows: Tensor, weight: Tensor) -> Tensor:
        products.append(tuple(weight.shape))
        return product(rows, weight)

    monkeypatch.setattr(highway_layer, "training_product", counted)
    for words in (random(15, INPUT).detach(), random(15, INPUT)):
        read_highway(
            words, weights(has_highway=True), None, [5, 5, 5], is_backward=False
        ).sum().backward()
    assert products == [(INPUT, 5 * HIDDEN), (INPUT, HIDDEN)]


def test_a_weight_changed_before_the_backward_pass_is_an_error() -> None:
    of = weights(has_highway=False)
    outputs = read_highway(random(5, INPUT), of, None, [5], is_backward=False)
    with torch.no_grad():
        of.of_hidden.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()
