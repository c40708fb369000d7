"""A recurrence with gates, compiled and in PyTorch, against a loop over steps in float64."""

from __future__ import annotations

from inspect import unwrap

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import gated_scan as module
from elmo_framework.nn.linear_recurrence import read_gated

WAYS = pytest.mark.parametrize("has_compiler", [True, False])
SIZES = pytest.mark.parametrize("shape", [(4, 3, 5), (1, 1, 1), (9, 2, 1030)])
"""Steps, rows and channels. The last has more channels than a thread reads at once."""


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch, has_compiler: bool) -> None:
    if not has_compiler:
        monkeypatch.setattr(module, "_library", lambda *_: None)


def case(steps: int, rows: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return gates, which steps are words, and the first states."""
    generator = torch.Generator().manual_seed(0)
    gates = 3 * torch.randn(steps, rows, 3 * size, generator=generator)
    # Row 0 has no padding; the others end earlier, the last one at once.
    lengths = steps - torch.arange(rows) * steps // max(1, rows - 1)
    is_word = torch.arange(steps)[:, None] < lengths
    # The strides of a transposed mask, as of layers.
    return gates, is_word.T.contiguous().T, torch.randn(rows, size, generator=generator)


def by_definition(gates: Tensor, is_word: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    outputs = []
    for sums, word in zip(gates, is_word, strict=True):
        forget, candidate, out = sums.chunk(3, dim=1)
        f = forget.sigmoid()
        state = torch.where(word[:, None], f * state + (1 - f) * candidate, state)
        outputs.append(out * out.sigmoid() * state)
    return torch.stack(outputs), state


def in_float64(gates: Tensor, is_word: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    return by_definition(gates.double(), is_word, start.double())


@WAYS
@SIZES
@pytest.mark.usefixtures("way")
def test_outputs_and_last_state_equal_the_loop_in_float64(shape) -> None:
    values = case(*shape)
    for has_gradients in (False, True):
        values[0].requires_grad_(has_gradients)
        torch.testing.assert_close(
            read_gated(*values), in_float64(*values), rtol=1e-5, atol=1e-6, check_dtype=False
        )


@WAYS
@SIZES
@pytest.mark.usefixtures("way")
def test_gradients_equal_those_of_the_loop_in_float64(shape) -> None:
    gates, is_word, start = case(*shape)
    gates.requires_grad_()
    start.requires_grad_()
    weights = [torch.randn_like(each) for each in in_float64(gates, is_word, start)]
    # Gradients with other strides than those of the results.
    weights = [each.transpose(0, 1).contiguous().transpose(0, 1) for each in weights]

    def gradients(results: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        total = sum((each * weight).sum() for each, weight in zip(results, weights, strict=True))
        return torch.autograd.grad(total, [gates, start])

    ours = gradients(read_gated(gates, is_word, start))
    theirs = gradients(in_float64(gates, is_word, start))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@WAYS
@pytest.mark.usefixtures("way")
def test_the_first_state_is_not_changed() -> None:
    gates, is_word, start = case(4, 3, 5)
    before = start.clone()
    _, end = read_gated(gates, is_word, start)
    end.zero_()
    torch.testing.assert_close(start, before, rtol=0, atol=0)


@pytest.mark.parametrize("has_gradients", [True, False])
def test_without_a_step_the_last_state_is_the_first(has_gradients) -> None:
    gates, is_word, start = case(0, 2, 5)
    gates.requires_grad_(has_gradients)
    start.requires_grad_(has_gradients)
    outputs, end = read_gated(gates, is_word, start)
    assert outputs.shape == (0, 2, 5)
    torch.testing.assert_close(end, start, rtol=0, atol=0)
    if has_gradients:
        (of_start,) = torch.autograd.grad((3 * end).sum(), [start])
        assert (of_start == 3).all()


def test_a_row_has_the_same_bits_in_any_batch_and_with_any_number_of_threads() -> None:
    gates, is_word, start = case(40, 8, 700)
    is_word = torch.ones_like(is_word)
    together, _ = read_gated(gates, is_word, start)
    num_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        for row in (0, 5):
            part = slice(row, row + 1)
            alone, _ = read_gated(gates[:, part], is_word[:, part], start[part])
            assert torch.equal(alone, together[:, part])
    finally:
        torch.set_num_threads(num_threads)


def test_values_that_are_no_numbers_stay_in_their_channel() -> None:
    gates, is_word, start = case(4, 1, 40)
    gates[1, 0, 3] = torch.nan
    outputs, end = read_gated(gates, is_word, start)
    wrong = ~outputs.isfinite()
    assert wrong[1:, 0, 3].all()
    assert not wrong[:, 0, [k for k in range(40) if k != 3]].any()
    assert end[0, 3].isnan()


def test_layers_without_any_number_give_none() -> None:
    gates, is_word, start = case(4, 1, 40)
    outputs, end = read_gated(torch.full_like(gates, torch.nan), is_word, start)
    assert outputs.isnan().all()
    assert end.isnan().all()


def test_large_sums_give_open_and_closed_gates() -> None:
    is_word, start = torch.ones(1, 1, dtype=torch.bool), torch.full((1, 3), 5.0)
    gates = torch.tensor([[[1e4, -1e4, 1e4, 7.0, 7.0, 7.0, 1.0, -1e4, -1e38]]]).requires_grad_()
    outputs, end = read_gated(gates, is_word, start)
    torch.testing.assert_close(end, torch.tensor([[5.0, 7.0, 5.0]]))
    expected = torch.tensor([5.0 * 1.0 / (1.0 + torch.e**-1.0), 0.0, 0.0])
    torch.testing.assert_close(outputs[0, 0], expected)
    (gradient,) = torch.autograd.grad(outputs[0, 0, 1:].sum(), gates)
    assert (gradient == 0).all()


@WAYS
@pytest.mark.parametrize("used", [(1, 1), (1, 0), (0, 1)])
@pytest.mark.usefixtures("way")
def test_gradients_of_sums_equal_those_of_the_loop(used) -> None:
    gates, is_word, start = case(4, 3, 5)
    gates.requires_grad_()
    start.requires_grad_()

    def gradients(results: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        totals = [each.sum() for each, is_used in zip(results, used, strict=True) if is_used]
        return torch.autograd.grad(sum(totals), [gates, start])  # of expanded numbers

    ours = gradients(read_gated(gates, is_word, start))
    theirs = gradients(in_float64(gates, is_word, start))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("gates", "words", "state"),
    [
        ((4, 3, 15), (4, 3), (1, 5)),
        ((4, 3, 15), (4, 3), (2, 5)),
        ((4, 3, 15), (4, 3), (3, 6)),
        ((4, 3, 15), (5, 3), (3, 5)),
        ((4, 2, 15), (4, 3), (3, 5)),
    ],
)
def test_shapes_that_do_not_fit_are_an_error(gates, words, state) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        unwrap(read_gated)(torch.zeros(gates), torch.ones(words).bool(), torch.zeros(state))


def test_traced_code_has_no_pointers(monkeypatch: pytest.MonkeyPatch) -> None:
    gates, _, start = case(4, 3, 5)
    assert module.is_supported(gates, start)
    monkeypatch.setattr(module, "is_traced", lambda: True)
    assert not module.is_supported(gates, start)
