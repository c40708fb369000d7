"""Both ways to compute a step, against float64 and PyTorch's own differentiation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import lstm_step

WAYS = pytest.mark.parametrize("has_compiler", [True, False])
CLIPS = pytest.mark.parametrize("cell_clip", [None, 0.7])
SIZES = pytest.mark.parametrize(("rows", "size"), [(5, 33), (1, 1), (70, 300)])
"""The last is computed by several threads where there are several."""


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch, has_compiler: bool) -> None:
    if not has_compiler:
        monkeypatch.setattr(lstm_step, "_library", lambda *_: None)


def random(*shapes: tuple[int, int]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [1.5 * torch.randn(shape, generator=generator) for shape in shapes]


def double_step(
    sums: Tensor, before: Tensor, cell_clip: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the activations, the memory and sigmoid(o) tanh(c), all differentiable."""
    i, j, f, o = sums.chunk(4, dim=1)
    activations = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid()
    after = activations[2] * before + activations[0] * activations[1]
    after = after if cell_clip is None else after.clamp(-cell_clip, cell_clip)
    return torch.cat(activations, dim=1), after, activations[3] * after.tanh()


@WAYS
@CLIPS
@SIZES
@pytest.mark.usefixtures("way")
def test_step_equals_float64(rows: int, size: int, cell_clip: float | None) -> None:
    gates, inputs, before = random((rows, 4 * size), (rows, 4 * size), (rows, size))
    kept = gates.clone()
    for keep in (False, True):
        found = lstm_step.step(kept, inputs, before, cell_clip=cell_clip, keep=keep)
        assert torch.equal(kept, gates) != keep
        activations, *expected = double_step(
            gates.double() + inputs.double(), before.double(), cell_clip
        )
        torch.testing.assert_close(found, tuple(expected), check_dtype=False, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(kept, activations, check_dtype=False, atol=1e-6, rtol=1e-5)


@WAYS
@CLIPS
@SIZES
@pytest.mark.usefixtures("way")
def test_gradients_equal_those_of_float64(rows: int, size: int, cell_clip: float | None) -> None:
    shapes = (rows, 4 * size), (rows, size), (rows, size), (rows, size)
    sums, before, of_output, of_memory = random(*shapes)
    leaves = [tensor.double().requires_grad_() for tensor in (sums, before)]
    _, *results = double_step(leaves[0], leaves[1], cell_clip)
    of_results = [of_memory.double(), of_output.double()]
    expected = torch.autograd.grad(results, leaves, of_results)
    if cell_clip is not None and rows > 1:
        is_clipped = results[0].abs() >= cell_clip
        assert is_clipped.any()
        assert not is_clipped.all()

    gates = torch.zeros_like(sums)
    after, _ = lstm_step.step(gates, sums, before, cell_clip=cell_clip, keep=True)
    of_sums = torch.empty_like(sums)
    lstm_step.step_backward(
        gates, before, after, of_output, of_memory, cell_clip=cell_clip, of_sums=of_sums
    )
    found = of_sums, of_memory
    torch.testing.assert_close(found, expected, check_dtype=False, atol=1e-5, rtol=1e-5)


@WAYS
@pytest.mark.usefixtures("way")
def test_gates_are_exact_to_the_last_bits() -> None:
    """Also near zero, where tanh by exp would cancel."""
    sizes = torch.logspace(-6, 1.5, 500)
    values = torch.cat([-sizes.flip(0), torch.zeros(1), sizes])[None]
    zeros, open_ = torch.zeros_like(values), torch.full_like(values, 40.0)
    for sums, expected in (
        ([open_, values, zeros, zeros], values.double().tanh()),
        ([values, open_, zeros, zeros], values.double().sigmoid()),
    ):
        gates = torch.cat(sums, dim=1)
        found, _ = lstm_step.step(gates, torch.zeros_like(gates), zeros, cell_clip=None, keep=False)
        torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("size", [-1e4, -100.0, -89.0, 89.0, 1e4])
def test_saturated_gates_have_finite_gradients(size: float) -> None:
    sums, before = torch.full((1, 4 * 64), size), torch.ones(1, 64)
    after, output = lstm_step.step(sums, torch.zeros_like(sums), before, cell_clip=None, keep=False)
    gate, candidate = torch.tensor(size).sigmoid(), torch.tensor(size).tanh()
    expected = gate * before + gate * candidate
    torch.testing.assert_close(after, expected, rtol=1e-6, atol=1e-30)
    torch.testing.assert_close(output, gate * expected.tanh(), rtol=1e-6, atol=1e-30)


def test_nan_sums_give_nan_outputs() -> None:
    sums = torch.full((2, 4 * 33), float("nan"))
    zeros = torch.zeros(2, 33)
    _, output = lstm_step.step(sums.clone(), sums, zeros, cell_clip=3.0, keep=False)
    assert output.isnan().all()


@pytest.mark.parametrize("cell_clip", [None, 3.0])
@pytest.mark.parametrize("gate", range(4))
def test_one_nan_gate_gives_nan(gate: int, cell_clip: float | None) -> None:
    sums = torch.zeros(1, 4, 33)
    sums[:, gate] = float("nan")
    inputs, before = torch.zeros(1, 4 * 33), torch.ones(1, 33)
    _, output = lstm_step.step(sums.flatten(1), inputs, before, cell_clip=cell_clip, keep=False)
    assert output.isnan().all()


def test_denormals_are_not_flushed_in_the_process() -> None:
    """A library linked with fast arithmetic would flush them to zero in the whole process."""
    gates = torch.zeros(1, 4)
    lstm_step.step(gates, gates, torch.zeros(1, 1), cell_clip=None, keep=False)
    assert (torch.tensor([1e-40]) * torch.tensor([0.5])).item() != 0
