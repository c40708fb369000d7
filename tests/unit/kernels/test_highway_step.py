"""Both ways to compute a step with a highway, against float64 and PyTorch's differentiation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import highway_step as module
from elmo_framework.kernels.highway_step import highway_step, highway_step_backward

WAYS = pytest.mark.parametrize("has_compiler", [True, False])
PARTS = pytest.mark.parametrize("has_highway", [True, False])
MASKS = pytest.mark.parametrize("has_mask", [True, False])
SIZES = pytest.mark.parametrize(("rows", "kept", "size"), [(5, 3, 33), (4, 4, 1), (70, 40, 300)])
"""The last is computed by several threads where there are several."""


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch, has_compiler: bool) -> None:
    if not has_compiler:
        monkeypatch.setattr(module, "_library", lambda *_: None)


class Case:
    """Random inputs of a step, and its results and gradients in float64."""

    def __init__(self, rows: int, kept: int, size: int, *, has_highway: bool, has_mask: bool):
        self.generator = torch.Generator().manual_seed(0)
        self.num_gates = 5 if has_highway else 4
        self.kept = kept
        self.sums, self.gates = (self.random(rows, self.num_gates * size) for _ in range(2))
        self.carried = self.random(rows, size) if has_highway else None
        # A mask is that of all rows, of which some have ended.
        self.mask = self.random(rows + 2, size) if has_mask else None
        self.before, self.of_output, self.of_memory = (self.random(rows, size) for _ in range(3))
        self.of_memory[kept:] = 0
        self.of_hidden = self.random(kept, size)

    def random(self, rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=self.generator)

    def results(
        self, sums: Tensor, before: Tensor, carried: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the activations, the output, the memory and the hidden state of the next step."""
        i, j, f, o, *t = sums.chunk(self.num_gates, dim=1)
        i, j, f, o, t = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid(), [x.sigmoid() for x in t]
        memory = f * before + i * j
        output = o * memory.tanh()
        if carried is not None:
            output = t[0] * output + (1 - t[0]) * carried
        hidden = output[: self.kept]
        if self.mask is not None:
            hidden = hidden * self.mask[: self.kept].double()
        return torch.cat([i, j, f, o, *t], dim=1), output, memory[: self.kept], hidden

    def step(self) -> list[Tensor]:
        """Return what the step leaves: activations, output, memory and hidden state."""
        gates, output = self.gates.clone(), torch.empty_like(self.before)
        memory, hidden = (torch.empty_like(self.of_hidden) for _ in range(2))
        highway_step(
            self.sums.clone(),
            gates,
            self.carried,
            self.mask,
            self.before,
            output=output,
            memory=memory,
            hidden=hidden,
        )
        return [gates, output, memory, hidden]


@WAYS
@PARTS
@MASKS
@SIZES
@pytest.mark.usefixtures("way")
def test_step_equals_float64(
    rows: int, kept: int, size: int, has_highway: bool, has_mask: bool
) -> None:
    case = Case(rows, kept, size, has_highway=has_highway, has_mask=has_mask)
    carried = None if case.carried is None else case.carried.double()
    sums = case.sums.double() + case.gates.double()
    expected = case.results(sums, case.before.double(), carried)
    for found, exact in zip(case.step(), expected, strict=True):
        torch.testing.assert_close(found, exact, check_dtype=False, atol=1e-6, rtol=1e-5)


@WAYS
@PARTS
@MASKS
@SIZES
@pytest.mark.usefixtures("way")
def test_gradients_equal_those_of_float64(
    rows: int, kept: int, size: int, has_highway: bool, has_mask: bool
) -> None:
    case = Case(rows, kept, size, has_highway=has_highway, has_mask=has_mask)
    sums = (case.sums + case.gates).double().requires_grad_()
    before = case.before.double().requires_grad_()
    carried = None if case.carried is None else case.carried.double().requires_grad_()
    _, *results = case.results(sums, before, carried)
    upstream = [case.of_output, case.of_memory[:kept], case.of_hidden]
    leaves = [leaf for leaf in (sums, before, carried) if leaf is not None]
    expected = torch.autograd.grad(results, leaves, [each.double() for each in upstream])

    of_sums, of_memory = torch.empty_like(case.sums), case.of_memory.clone()
    of_carried = None if case.carried is None else torch.empty_like(case.carried)
    highway_step_backward(
        case.step()[0],
        case.carried,
        case.mask,
        case.before,
        case.of_hidden,
        of_output=case.of_output.clone(),
        of_memory=of_memory,
        of_sums=of_sums,
        of_carried=of_carried,
    )
    found = [each for each in (of_sums, of_memory, of_carried) if each is not None]
    for own, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(own, exact, check_dtype=False, atol=1e-5, rtol=1e-5)
