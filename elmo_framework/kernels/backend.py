"""The choice between code for the CPU and code for accelerators.

On the CPU, products go through oneDNN or C, and a number can be read from a tensor at any time. On
a GPU such a read waits for all work launched before it, so its code keeps to shapes that are known
without one. Everything that depends on the kind of device asks this module, so that tests can run
the code for accelerators on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor
from torch.amp.autocast_mode import is_autocast_available

_is_accelerator_forced = ContextVar("is_accelerator_forced", default=False)


def uses_cpu_code(place: Tensor | torch.device) -> bool:
    """Return whether tensors like this one, or on this device, take the code for the CPU."""
    device = place.device if isinstance(place, Tensor) else place
    return device.type == "cpu" and not _is_accelerator_forced.get()


def is_traced() -> bool:
    """Return whether torch.compile, torch.export or torch.jit traces: none can read pointers."""
    is_tracing = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return torch.compiler.is_compiling() or is_tracing


def require_shape(name: str, tensor: Tensor, *shape: int) -> None:
    """Check a tensor before compiled code reads it, which would not notice the end of its memory.

    Raises:
        ValueError: it has another shape.
    """
    if tensor.shape != shape:
        raise ValueError(f"{name} has the shape {tuple(tensor.shape)}; expected {shape}")


@contextmanager
def accelerator_code() -> Iterator[None]:
    """Take the code for accelerators on the CPU too, inside the block."""
    token = _is_accelerator_forced.set(True)
    try:
        yield
    finally:
        _is_accelerator_forced.reset(token)


def side_by_side(
    place: Tensor | torch.device, first: Callable[[], Tensor], second: Callable[[], Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the results of two functions that do not depend on each other.

    A GPU computes the first one on a second stream. Both are called in order, so the random
    numbers that they draw are the same everywhere.
    """
    device = place.device if isinstance(place, Tensor) else place
    if device.type != "cuda":
        return first(), second()
    current, other = torch.cuda.current_stream(device), _second_stream(device)
    other.wait_stream(current)
    try:
        with torch.cuda.stream(other):
            of_first = first()
        of_second = second()
    except BaseException:
        with suppress(RuntimeError):  # the recording of a graph ends only where its streams join
            current.wait_stream(other)
        raise
    current.wait_stream(other)
    of_first.record_stream(current)  # its memory is reused only after what reads it there
    return of_first, of_second


@cache
def _second_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def autocast_dtype(place: Tensor | torch.device) -> torch.dtype | None:
    """Return the type that autocast gives to products on a device; None where it is off."""
    type_ = (place.device if isinstance(place, Tensor) else place).type
    if not is_autocast_available(type_) or not torch.is_autocast_enabled(type_):
        return None
    return torch.get_autocast_dtype(type_)


def no_autocast(place: Tensor | torch.device) -> AbstractContextManager[None]:
    """Return a context in which autocast is off, on devices that have it."""
    type_ = (place.device if isinstance(place, Tensor) else place).type
    return torch.autocast(type_, enabled=False) if is_autocast_available(type_) else nullcontext()
