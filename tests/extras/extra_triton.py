"""Triton's kernels in its interpreter, against the plain functions of the same operators."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from elmo_framework.kernels import adagrad, highway_step, lstm_step
from tests.experiment.jobs import ROOT
from tests.extras.triton_interpreter import TYPES, assert_near, kernels_of, no_gpu, random
from tests.unit.kernels.test_highway_step import Case

triton_kernels = kernels_of("triton_kernels")
CLIPS = pytest.mark.parametrize("clip", [None, 0.7])
SIZES = pytest.mark.parametrize(("rows", "size"), [(5, 33), (1, 1), (70, 300)])


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)


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


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("scale", [None, 3.0])
def test_adagrad(scale: float | None, weight_decay: float) -> None:
    shapes = [(5, 33), (1, 1), (2000, 3)]
    parameters, gradients = random(*shapes), random(*[shape[::-1] for shape in shapes])
    gradients = [gradient.T for gradient in gradients]  # not contiguous
    divisor, rate = None if scale is None else torch.tensor(scale), torch.tensor(0.2)
    results = []
    for update in (triton_kernels.adagrad, adagrad._plain_update):
        changed, squares = ([each.clone() for each in parameters] for _ in range(2))
        squares = [each.abs() for each in squares]
        update(changed, gradients, squares, rate, divisor, 1e-10, weight_decay)
        results.append([*changed, *squares])
    assert_near(*results)


def test_kernels_compile_for_a_gpu() -> None:
    """The interpreter knows no types; a new one of Python has Triton's compiler instead."""
    environment = {key: each for key, each in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(ROOT)
    script = Path(__file__).with_name("compile_kernels.py")
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"_step", "_adagrad", "_log_sum_exp", "_window_maxima"} <= set(done.stdout.split())
