"""Triton's kernels in its interpreter, against the plain functions of the same operators."""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import elmo_framework
from elmo_framework.kernels import highway_step, lstm_step
from tests.unit.kernels.test_highway_step import Case

os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are decorated
pytest.importorskip("triton")


def _imported() -> ModuleType:
    """Import the kernels without the checks of types, whose wrappers Triton cannot read."""
    path = Path(elmo_framework.__file__).parent / "kernels/triton_kernels.py"
    spec = spec_from_file_location("triton_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


triton_kernels = _imported()
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
CLIPS = pytest.mark.parametrize("clip", [None, 0.7])
SIZES = pytest.mark.parametrize(("rows", "size"), [(5, 33), (1, 1), (70, 300)])


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_of", lambda _: nullcontext())


def random(*shapes: tuple[int, int], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [(1.5 * torch.randn(shape, generator=generator)).to(dtype) for shape in shapes]


def assert_near(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        tolerance = 2e-2 if one.dtype == torch.bfloat16 else 2e-6
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@TYPES
@CLIPS
@SIZES
@pytest.mark.parametrize("keep", [True, False])
def test_step(rows: int, size: int, clip: float | None, dtype: torch.dtype, keep: bool) -> None:
    gates, inputs = random((rows, 4 * size), (rows, 4 * size), dtype=dtype)
    (before,) = random((rows, size))
    results = []
    for step in (triton_kernels.lstm_step, lstm_step._plain_step):
        activations = gates.clone()
        after, output = step(activations, inputs, before, clip, keep)
        assert torch.equal(activations, gates) != keep
        results.append([after, output, activations])
    assert_near(*results)


@TYPES
@CLIPS
@SIZES
def test_step_backward(rows: int, size: int, clip: float | None, dtype: torch.dtype) -> None:
    gates, inputs = random((rows, 4 * size), (rows, 4 * size), dtype=dtype)
    before, of_memory = random((rows, size), (rows, size))
    (of_output,) = random((rows, size), dtype=dtype)
    after, _ = lstm_step._plain_step(gates, inputs, before, clip, True)
    results = []
    for backward in (triton_kernels.lstm_step_backward, lstm_step._plain_step_backward):
        of_sums, of_before = torch.empty_like(gates), of_memory.clone()
        backward(gates, before, after, of_output, of_before, clip, of_sums)
        results.append([of_sums, of_before])
    assert_near(*results)


@TYPES
@CLIPS
@SIZES
def test_clipped_gradient(rows: int, size: int, clip: float | None, dtype: torch.dtype) -> None:
    """Also where a bfloat16 was clipped to a limit that bfloat16 cannot represent."""
    of_output, of_next, hidden = random(*[(rows, size)] * 3, dtype=dtype)
    hidden = hidden if clip is None else hidden.clamp(-clip, clip)
    results = []
    for compute in (triton_kernels.clipped_gradient, lstm_step._plain_clipped_gradient):
        out = torch.empty_like(hidden)
        compute(of_output, of_next, hidden, clip, out)
        results.append([out])
    assert_near(*results)


def test_nan_sums_give_nan_outputs() -> None:
    sums, zeros = torch.full((2, 4 * 33), float("nan")), torch.zeros(2, 33)
    assert all(
        each.isnan().all() for each in triton_kernels.lstm_step(sums, sums, zeros, 3.0, True)
    )


@pytest.mark.parametrize("has_highway", [True, False])
@pytest.mark.parametrize("has_mask", [True, False])
@pytest.mark.parametrize(
    ("rows", "kept", "size"), [(5, 3, 33), (4, 4, 1), (70, 40, 300), (3, 0, 5)]
)
def test_highway_step(rows: int, kept: int, size: int, has_highway: bool, has_mask: bool) -> None:
    case = Case(rows, kept, size, has_highway=has_highway, has_mask=has_mask)
    inputs = case.carried, case.mask, case.before
    results, gradients, gates = [], [], case.gates
    for step in (triton_kernels.highway_step, highway_step._plain_step):
        gates, output = case.gates.clone(), torch.empty_like(case.before)
        memory, hidden = torch.empty(kept, size), torch.empty(kept, size)
        step(case.sums, gates, *inputs, output, memory, hidden)
        results.append([gates, output, memory, hidden])
    assert_near(*results)
    for backward in (
        triton_kernels.highway_step_backward,
        highway_step._plain_step_backward,
    ):
        changed = case.of_output.clone(), case.of_memory.clone(), torch.empty_like(gates)
        of_carried = torch.empty_like(case.before) if has_highway else None
        backward(gates, *inputs, case.of_hidden, *changed, of_carried)
        gradients.append([*changed, *([] if of_carried is None else [of_carried])])
    assert_near(*gradients)
