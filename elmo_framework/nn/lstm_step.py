"""The pointwise part of an LSTM's step: compiled from `lstm_step.c`, or by PyTorch.

With a C compiler at hand the first step compiles a few lines, in half a second, and keeps the
result for later processes; without one, or on another device or type, PyTorch's own operations
compute the same.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from shutil import which

import torch
from torch import Tensor

from elmo_framework.common.cache_root import cache_root

_SOURCE = Path(__file__).with_name("lstm_step.c")
# The linker is not told of fast arithmetic: it would change how the whole process treats the
# smallest numbers.
_COMPILE = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-c"]
_LINK = ["-shared", "-fopenmp"]
_NO_LIMIT = torch.finfo(torch.float32).max
_LOG = logging.getLogger(__name__)


def step(
    gates: Tensor, inputs: Tensor, before: Tensor, *, cell_clip: float | None, keep: bool
) -> tuple[Tensor, Tensor]:
    """Make the pointwise part of a step, without gradients.

    Args:
        gates: "rows 4*cell": the recurrent part of the sums; holds the activations afterwards
            if `keep`.
        inputs: "rows 4*cell": the rest of the sums.
        before: "rows cell": the memory c.
        cell_clip: the largest magnitude in c.
        keep: whether the activations are needed for the backward pass.

    Returns:
        The memory after the step, and sigmoid(o) tanh(c).
    """
    library = _library() if _is_served(gates, inputs, before) else None
    if library is None:
        return _plain_step(gates, inputs, before, cell_clip, keep)
    after, output = torch.empty_like(before), torch.empty_like(before)
    rows, size = before.shape
    limit = _NO_LIMIT if cell_clip is None else cell_clip
    pointers = [tensor.data_ptr() for tensor in (gates, inputs, before, after, output)]
    library.lstm_step(rows, size, limit, keep, *pointers)
    return after, output


def step_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    *,
    cell_clip: float | None,
    of_sums: Tensor,
) -> None:
    """Pass gradients back through a step, in place.

    Args:
        gates: the activations that `step` kept.
        before: the memory before the step.
        after: the memory after it.
        of_output: the gradient of sigmoid(o) tanh(c).
        of_memory: the gradient of `after`; then that of `before`.
        cell_clip: as in the step; where it clipped, the gradient is zero.
        of_sums: "rows 4*cell": is filled with the gradient of the sums.
    """
    tensors = gates, before, after, of_output, of_memory, of_sums
    library = _library() if _is_served(*tensors) else None
    if library is None:
        _plain_step_backward(*tensors, cell_clip)
        return
    rows, size = before.shape
    limit = _NO_LIMIT if cell_clip is None else cell_clip
    library.lstm_step_backward(rows, size, limit, *[tensor.data_ptr() for tensor in tensors])


def _is_served(*tensors: Tensor) -> bool:
    return all(
        t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors
    )


def _plain_step(
    gates: Tensor, inputs: Tensor, before: Tensor, cell_clip: float | None, keep: bool
) -> tuple[Tensor, Tensor]:
    sums = (gates + inputs).to(before.dtype)
    i, j, f, o = sums.chunk(4, dim=1)
    i, j, f, o = i.sigmoid(), j.tanh(), f.sigmoid(), o.sigmoid()
    after = f * before + i * j
    if cell_clip is not None:
        after = after.clamp(-cell_clip, cell_clip)
    if keep:
        gates.copy_(torch.cat([i, j, f, o], dim=1))
    return after, o * after.tanh()


def _plain_step_backward(
    gates: Tensor,
    before: Tensor,
    after: Tensor,
    of_output: Tensor,
    of_memory: Tensor,
    of_sums: Tensor,
    cell_clip: float | None,
) -> None:
    i, j, f, o = gates.chunk(4, dim=1)
    outer = after.tanh()
    inner = of_memory + of_output * o * (1 - outer * outer)
    if cell_clip is not None:
        inner = inner.masked_fill(after.abs() >= cell_clip, 0)
    parts = [
        inner * j * i * (1 - i),
        inner * i * (1 - j * j),
        inner * before * f * (1 - f),
        of_output * outer * o * (1 - o),
    ]
    of_memory.copy_(inner * f)
    of_sums.copy_(torch.cat(parts, dim=1))


@cache
def _library() -> ctypes.CDLL | None:
    """Return the compiled step; None where it cannot be compiled."""
    compiler = which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    try:
        library = ctypes.CDLL(str(_compiled(compiler)))
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.info("the LSTM's step is left to PyTorch: %s", error)
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_long
    library.lstm_step.argtypes = [number, number, ctypes.c_float, ctypes.c_int, *[pointer] * 5]
    library.lstm_step_backward.argtypes = [number, number, ctypes.c_float, *[pointer] * 6]
    library.lstm_step.restype = library.lstm_step_backward.restype = None
    return library


def _compiled(compiler: str) -> Path:
    """Compile once for a source and a processor; processes that do it together do no harm."""
    identity = [_SOURCE.read_text(encoding="utf-8"), *_COMPILE, *_LINK, compiler, _processor()]
    name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    folder = cache_root() / "compiled"
    target = folder / f"lstm_step-{name}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            compiled, linked = Path(aside) / "lstm_step.o", Path(aside) / target.name
            for command in (
                [*_COMPILE, str(_SOURCE), "-o", str(compiled)],
                [*_LINK, str(compiled), "-o", str(linked), "-lm"],
            ):
                subprocess.run([compiler, *command], check=True, capture_output=True, timeout=60)
            linked.replace(target)
    return target


def _processor() -> str:
    """Name the processor, since what is compiled for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith("flags")), platform.machine())
