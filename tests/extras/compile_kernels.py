"""Compile all kernels for an H100 with Triton, which needs no GPU for that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from elmo_framework.kernels import triton_kernels, triton_tiles

_H100 = GPUTarget("cuda", 90, 32)
_OF_THE_TYPE = {
    *("gates", "inputs", "output", "weight", "gradient", "of_output", "of_next", "of_sums"),
    *("of_logits", "maxima", "out", "hidden"),
}
"""Arguments of the type of the inputs; other tensors are float32."""

_INTEGERS = {"targets": "*i64", "ids": "*i64", "places": "*i32"}
_NUMBERS = {
    *("num_rows", "num_columns", "num_filters", "num_windows", "num_summed", "row_size", "dim"),
    *("window_size", "size", "count", "next_count"),
}
_LIMITS = {"limit", "eps", "weight_decay"}
_CONSTANTS = {"block": 1024, "tile_rows": 64, "tile_columns": 64, "depth": 32}


def main() -> None:
    """Compile each kernel for both types; print its name."""
    for module in (triton_kernels, triton_tiles):
        for name, kernel in _kernels(module):
            for type_ in ("bf16", "fp32"):
                triton.compile(_source(kernel, type_), target=_H100)
            sys.stdout.write(f"{name}\n")


def _kernels(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the kernels of a module: its compiled functions that are launched."""
    for name, value in vars(module).items():
        is_kernel = isinstance(value, triton.JITFunction) and {
            "block",
            "tile_rows",
        } & set(value.arg_names)
        if is_kernel and "row" not in value.arg_names:
            yield name, value


def _source(kernel: Any, type_: str) -> ASTSource:
    signature = {name: _type(name, type_, kernel) for name in kernel.arg_names}
    constants = {
        (kernel.arg_names.index(name),): _CONSTANTS.get(name, True)
        for name, found in signature.items()
        if found == "constexpr"
    }
    return ASTSource(fn=kernel, signature=signature, constexprs=constants)


def _type(name: str, type_: str, kernel: Any) -> str:
    is_wide = kernel.fn.__name__.startswith(("_highway", "_adagrad"))
    if name in _CONSTANTS or name.startswith(("has_", "keep")):
        return "constexpr"
    if name in _INTEGERS:
        return _INTEGERS[name]
    if name in _NUMBERS:
        return "i32"
    if name in _LIMITS:
        return "fp32"
    return f"*{type_}" if name in _OF_THE_TYPE and not is_wide else "*fp32"


if __name__ == "__main__":
    main()
