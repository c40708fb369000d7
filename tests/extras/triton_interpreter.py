"""Triton's kernels in its interpreter, which runs them on the CPU."""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import elmo_framework

os.environ["TRITON_INTERPRET"] = "1"  # before the kernels are decorated
pytest.importorskip("triton")

TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


def kernels_of(name: str) -> ModuleType:
    """Import kernels without the checks of types, whose wrappers Triton cannot read."""
    path = Path(elmo_framework.__file__).parent / f"kernels/{name}.py"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch kernels on the CPU."""
    monkeypatch.setattr(torch.cuda, "device_of", lambda _: nullcontext())


def dot_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply tiles of bfloat16, whose bits the interpreter would take for integers."""
    interpreter = import_module("triton.runtime.interpreter")
    builder, types = interpreter.InterpreterBuilder, interpreter.tl
    plain = builder.create_dot

    def widened(tile: Any) -> Any:
        if tile.dtype.scalar != types.bfloat16:
            return tile
        numbers = torch.from_numpy(tile.data.view("int16")).view(torch.bfloat16).float()
        return interpreter.TensorHandle(numbers.numpy(), types.float32)

    def create_dot(self: Any, left: Any, right: Any, *others: Any) -> Any:
        return plain(self, widened(left), widened(right), *others)

    monkeypatch.setattr(builder, "create_dot", create_dot)


def random(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [(1.5 * torch.randn(shape, generator=generator)).to(dtype) for shape in shapes]


def assert_near(found: list[Tensor], expected: list[Tensor], tolerance: float = 2e-6) -> None:
    """Compare tensors: to 1e-2 where they are bfloat16, otherwise to a tolerance."""
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        allowed = 2e-2 if one.dtype == torch.bfloat16 else tolerance
        torch.testing.assert_close(one, other, rtol=allowed, atol=allowed)
