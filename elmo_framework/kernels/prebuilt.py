"""Compiled kernels in the package: a native wheel has them, so that no compiler is needed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_FOLDER = "prebuilt"


class Level(NamedTuple):
    """Instructions of x86-64 CPUs that code is compiled for.

    Attributes:
        name: in the names of files.
        options: of the C compiler.
        flags: that a CPU must have, as Linux names them.
    """

    name: str
    options: tuple[str, ...]
    flags: frozenset[str]


_AVX2 = frozenset(["avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"])
_AVX512 = _AVX2 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])

LEVELS = (
    Level(
        "avx512_bf16",
        ("-march=x86-64-v4", "-mavx512bf16", "-mavx512vnni"),
        _AVX512 | {"avx512_bf16", "avx512_vnni"},
    ),
    Level("avx512", ("-march=x86-64-v4",), _AVX512),
    Level("avx2", ("-march=x86-64-v3",), _AVX2),
)
"""From the most to the fewest instructions."""


def prebuilt_path(source: Path, level: Level) -> Path:
    """Return where a native wheel has the library of a source."""
    return source.parent / _FOLDER / f"{source.stem}-{level.name}.so"


def prebuilt_file(source: Path, cpu: str) -> Path | None:
    """Return the library of a source for the most instructions of a CPU; None if there is none.

    Args:
        source: a C file of the package.
        cpu: the flags of the CPU, separated by spaces, as in `/proc/cpuinfo`.
    """
    flags = set(cpu.split())
    paths = (prebuilt_path(source, level) for level in LEVELS if level.flags <= flags)
    return next((path for path in paths if path.is_file()), None)
