"""The C compiler, and the folder in which what it made is kept for this user alone.

A library that is loaded can do all that the user can. So the folder is the user's own and closed
to others, and so is each file in it, whose name holds the digest of its source and of its content.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryDirectory, TemporaryFile

import torch
from torch import Tensor

from elmo_framework.errors import RunError
from elmo_framework.io.files import cache_root, digest, synchronize, write_text

_COMPILE = ["-O3", "-march=native", "-fopenmp", "-fPIC", "-c"]
_LINK = ["-shared", "-fopenmp"]
_LONGEST = 20.0
"""Seconds that a source may take, which needs half a one."""

_INSTALL = "install gcc and the headers of the C library (Debian, Ubuntu: gcc libc6-dev)"
_OTHERS_CAN_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SHOWN = 200
_DIGITS = 16

_hung: set[str] = set()
"""Compilers that did not end in this process, where the folder cannot keep that."""


class CompilerError(Exception):
    """There is no library of a source; says why, and what the user can do."""


def compiled_file(source: Path, *, fast_math: bool) -> Path:
    """Return the library of a source, compiled if there is none that is whole.

    Processes that compile it at the same time do no harm.

    Args:
        source: a file in C; headers beside it count as parts of it.
        fast_math: whether sums may be arranged in another order, and the like.

    Raises:
        CompilerError: there is no compiler, or it fails, or others could write to the library.
        OSError: the folder cannot be read or written.
    """
    # The linker is not told of fast arithmetic: it would change how the whole process treats the
    # smallest numbers.
    compile_ = [*_COMPILE, "-ffast-math"] if fast_math else _COMPILE
    compiler, folder = _compiler(), _own_folder()
    read = [source, *sorted(source.parent.glob("*.h"))]
    texts = [path.read_text(encoding="utf-8") for path in read]
    name = f"{source.stem}-{_short([*texts, *compile_, *_LINK, *compiler, _processor()])}"
    for path in sorted(folder.glob(f"{name}-*.so")):
        _require_own(path)
        if path.stem.endswith(f"-{digest([path])[:_DIGITS]}"):
            return path
        path.unlink(missing_ok=True)  # what a full disk or a crash of the machine left of it
    return _compiled(compiler, compile_, source, folder, name)


def _compiler() -> list[str]:
    """Return the command that compiles; the variable CC may hold options too."""
    if os.name != "posix":
        raise CompilerError("files in C are compiled on Linux and macOS only")
    wanted = os.environ.get("CC", "")
    try:
        command = shlex.split(wanted) or ["cc"]
    except ValueError as error:
        raise CompilerError(f"the variable CC is {wanted!r}: {error}") from error
    found = which(command[0])
    if found is None:
        raise CompilerError(f"there is no C compiler {command[0]!r}; {_INSTALL}")
    return [found, *command[1:]]


def _own_folder() -> Path:
    """Return the folder of this user, made if need be.

    Raises:
        CompilerError: others could write to it, or there is no place for it.
    """
    try:
        folder = cache_root() / f"compiled-{os.geteuid()}"
    except RunError as error:
        raise CompilerError(str(error)) from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _require_own(folder)
    return folder


def _require_own(path: Path) -> None:
    """Refuse what another user has made or may write to.

    Raises:
        CompilerError: it is.
    """
    status = path.stat() if path.is_dir() else path.lstat()
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_CAN_WRITE or not is_plain:
        raise CompilerError(
            f"{path} is not used, since others can write to it (owner {status.st_uid}, mode "
            f"{stat.S_IMODE(status.st_mode):o}); remove it, or set ELMO_CACHE_ROOT to a folder of "
            "your own"
        )


def _compiled(
    compiler: Sequence[str], compile_: Sequence[str], source: Path, folder: Path, name: str
) -> Path:
    """Compile and link; the result appears whole, and is on the disk before it has its name."""
    deadline = time.monotonic() + _LONGEST
    with TemporaryDirectory(dir=folder) as aside:
        compiled, linked = str(Path(aside) / "compiled.o"), Path(aside) / "linked.so"
        for options in (
            [*compile_, str(source), "-o", compiled],
            [*_LINK, compiled, "-o", str(linked), "-lm"],
        ):
            _run([*compiler, *options], folder, deadline)
        linked.chmod(0o700)
        synchronize(linked)
        path = linked.replace(folder / f"{name}-{digest([linked])[:_DIGITS]}.so")
    synchronize(folder)
    return path


def _run(command: Sequence[str], folder: Path, deadline: float) -> None:
    """Run the compiler, which is ended with all that it started when it takes too long.

    Raises:
        CompilerError: it fails, or it hangs or has hung before.
    """
    note = folder / f"hangs-{_version(command[0])}.txt"
    reason = f"the C compiler {command[0]} did not end within {_LONGEST:.0f} seconds"
    if note.name in _hung or note.exists():
        raise CompilerError(f"{reason}; repair it, and remove {note}")
    with (
        TemporaryFile() as output,
        Popen(command, stdin=DEVNULL, stdout=output, stderr=output, start_new_session=True) as run,
    ):
        try:
            run.wait(max(0.0, deadline - time.monotonic()))
        except BaseException as error:
            os.killpg(run.pid, signal.SIGKILL)
            if not isinstance(error, TimeoutExpired):
                raise
            _hung.add(note.name)
            with suppress(OSError):
                write_text(note, f"{reason}\n")
            raise CompilerError(f"{reason}; repair it, and remove {note}") from error
        output.seek(0)
        said = output.read().decode(errors="replace").strip().partition("\n")[0][:_SHOWN]
    if run.returncode:
        raise CompilerError(f"the C compiler {command[0]} fails ({said}); {_INSTALL}")


def _version(compiler: str) -> str:
    """Tell a compiler from the one that is there after it was replaced."""
    status = Path(compiler).stat()
    return _short([compiler, str(status.st_size), str(status.st_mtime_ns)])


def _processor() -> str:
    """Name the processor, since what is compiled for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith("flags")), platform.machine())


def _short(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


_loaders: list[Callable[[], ctypes.CDLL | None]] = []
_errors: dict[str, str] = {}
"""Why a source has no library, by its name."""


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
    def load() -> ctypes.CDLL | None:
        try:
            loaded = ctypes.CDLL(str(compiled_file(source, fast_math=fast_math)))
        except (CompilerError, OSError) as error:
            _errors[source.name] = str(error)
            return None
        for name, types in functions.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = types, None
        return loaded

    _loaders.append(load)
    return load


def slow_path_reason() -> str | None:
    """Return why PyTorch computes what compiled functions would; None where it need not.

    All sources that the imported modules name are compiled, if they have not been.
    """
    for load in _loaders:
        load()
    return next(iter(_errors.values()), None)
