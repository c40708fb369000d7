"""Functions in C that are compiled when they are first used.

With a C compiler at hand that takes half a second, once for a machine; without one, or on another
device or type, PyTorch's own operations compute the same.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import which

import torch
from torch import Tensor

from elmo_framework.common.cache_root import cache_root

_COMPILE = ["-O3", "-march=native", "-fopenmp", "-fPIC", "-c"]
_LINK = ["-shared", "-fopenmp"]
_LOG = logging.getLogger(__name__)


def is_served(*tensors: Tensor) -> bool:
    """Tell whether compiled functions can read the numbers of these tensors as they lie."""
    return all(
        t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors
    )


def library(
    source: Path, *, fast_math: bool, functions: Mapping[str, Sequence[type]]
) -> Callable[[], ctypes.CDLL | None]:
    """Return what gives the functions of a source; None where they cannot be compiled.

    Args:
        source: a file in C; it may include headers (`.h`) that stand beside it.
        fast_math: whether sums may be arranged in another order, and the like.
        functions: the types of their arguments, by name; they return nothing.
    """

    @cache
    def loaded() -> ctypes.CDLL | None:
        found = _loaded(source, fast_math=fast_math)
        for name, types in functions.items() if found is not None else ():
            function = getattr(found, name)
            function.argtypes, function.restype = types, None
        return found

    return loaded


def _loaded(source: Path, *, fast_math: bool) -> ctypes.CDLL | None:
    compiler = which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    # The linker is not told of fast arithmetic: it would change how the whole process treats the
    # smallest numbers.
    compile_ = [*_COMPILE, "-ffast-math"] if fast_math else _COMPILE
    try:
        return ctypes.CDLL(str(_compiled(compiler, compile_, source)))
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.info("what %s computes is left to PyTorch: %s", source.name, error)
        return None


def _compiled(compiler: str, compile_: Sequence[str], source: Path) -> Path:
    """Compile once for a source and a processor; processes that do it together do no harm."""
    read = [source, *sorted(source.parent.glob("*.h"))]
    texts = [path.read_text(encoding="utf-8") for path in read]
    identity = [*texts, *compile_, *_LINK, compiler, _processor()]
    name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    folder = cache_root() / "compiled"
    target = folder / f"{source.stem}-{name}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            compiled, linked = Path(aside) / f"{source.stem}.o", Path(aside) / target.name
            for command in (
                [*compile_, str(source), "-o", str(compiled)],
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
