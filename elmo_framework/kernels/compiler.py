"""Compile C sources and keep the libraries in a private folder of the user.

A loaded library runs with all rights of the user. Therefore only the user may write to the folder
and to each file in it, whose name contains the digests of its source and of its content.
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
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.prebuilt import prebuilt_file

LINK_OPTIONS = ["-shared", "-fopenmp"]
_LONGEST = 20.0
"""Timeout in seconds; compiling a source takes about half a second."""

_INSTALL = "install gcc and the headers of the C library (Debian, Ubuntu: gcc libc6-dev)"
_OTHERS_CAN_WRITE = stat.S_IWGRP | stat.S_IWOTH
_CPU = torch.device("cpu")
_SHOWN = 200
_DIGITS = 16

_hung: set[str] = set()
"""Compilers that timed out in this process, in case the folder cannot be written."""


def compiled_file(source: Path, *, fast_math: bool) -> Path:
    """Return the library of a source; compile it if it is missing or damaged.

    Several processes can safely compile it at the same time.

    Args:
        source: a C file; headers in its folder are treated as parts of it.
        fast_math: whether the compiler may reorder sums, for example.

    Raises:
        RunError: no compiler is installed, or it fails, or others could write to the library.
        OSError: the folder cannot be read or written.
    """
    compile_ = compile_options(["-march=native"], fast_math=fast_math)
    compiler, folder = _compiler(), _own_folder()
    sources = [source, *sorted(source.parent.glob("*.h"))]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    name = f"{source.stem}-{_short([*texts, *compile_, *LINK_OPTIONS, *compiler, _cpu()])}"
    for path in sorted(folder.glob(f"{name}-*.so")):
        _require_own(path)
        if path.stem.endswith(f"-{digest([path])[:_DIGITS]}"):
            return path
        path.unlink(missing_ok=True)  # incomplete, after a full disk or a crash of the machine
    return _compiled(compiler, compile_, source, folder, name)


def compile_options(instructions: Sequence[str], *, fast_math: bool) -> list[str]:
    """Return the options that compile a source for some instructions."""
    # -ffast-math is not passed to the linker: it would flush denormals in the whole process.
    return ["-O3", *instructions, "-fopenmp", "-fPIC", "-c", *["-ffast-math"] * fast_math]


def _compiler() -> list[str]:
    """Return the compiler's command; the variable CC may contain options too."""
    if os.name != "posix":
        raise RunError("files in C are compiled on Linux and macOS only")
    variable = os.environ.get("CC", "")
    try:
        command = shlex.split(variable) or ["cc"]
    except ValueError as error:
        raise RunError(f"the variable CC is {variable!r}: {error}") from error
    path = which(command[0])
    if path is None:
        raise RunError(f"C compiler {command[0]!r} not found; {_INSTALL}")
    return [path, *command[1:]]


def _own_folder() -> Path:
    """Return the folder of this user; create it if it does not exist.

    Raises:
        RunError: others could write to it, or the cache folder is missing.
    """
    folder = cache_root() / f"compiled-{os.geteuid()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _require_own(folder)
    return folder


def _require_own(path: Path) -> None:
    status = path.stat() if path.is_dir() else path.lstat()
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_CAN_WRITE or not is_plain:
        raise RunError(
            f"{path} is not used, since others can write to it (owner {status.st_uid}, mode "
            f"{stat.S_IMODE(status.st_mode):o}); remove it, or set ELMO_CACHE_ROOT to a folder "
            "that only you can write to"
        )


def _compiled(
    compiler: Sequence[str], compile_: Sequence[str], source: Path, folder: Path, name: str
) -> Path:
    """Compile and link; the library is synchronized to disk before it gets its name."""
    deadline = time.monotonic() + _LONGEST
    with TemporaryDirectory(dir=folder) as aside:
        compiled, linked = str(Path(aside) / "compiled.o"), Path(aside) / "linked.so"
        for options in (
            [*compile_, str(source), "-o", compiled],
            [*LINK_OPTIONS, compiled, "-o", str(linked), "-lm"],
        ):
            _run([*compiler, *options], folder, deadline)
        linked.chmod(0o700)
        synchronize(linked)
        path = linked.replace(folder / f"{name}-{digest([linked])[:_DIGITS]}.so")
    synchronize(folder)
    return path


def _run(command: Sequence[str], folder: Path, deadline: float) -> None:
    """Run the compiler; after a timeout, kill its process group.

    Raises:
        RunError: it fails, or it hangs or has hung before.
    """
    # The name of the note changes when the compiler is replaced.
    status = Path(command[0]).stat()
    version = _short([command[0], str(status.st_size), str(status.st_mtime_ns)])
    note = folder / f"hangs-{version}.txt"
    reason = f"the C compiler {command[0]} did not end within {_LONGEST:.0f} seconds"
    if note.name in _hung or note.exists():
        raise RunError(f"{reason}; repair it, and remove {note}")
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
            raise RunError(f"{reason}; repair it, and remove {note}") from error
        output.seek(0)
        reason = output.read().decode(errors="replace").strip().partition("\n")[0][:_SHOWN]
    if run.returncode:
        raise RunError(f"the C compiler {command[0]} fails ({reason}); {_INSTALL}")


def _cpu() -> str:
    """Describe the CPU, since code compiled for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith("flags")), platform.machine())


def _short(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


SOURCES: dict[Path, bool] = {}
"""The sources of all imported modules, and whether each is compiled with fast arithmetic."""

_loaders: list[Callable[[], ctypes.CDLL | None]] = []
_errors: dict[str, str] = {}
"""The errors of sources that cannot be compiled, by file name."""


def library(
    source: Path, *, fast_math: bool, functions: Mapping[str, Sequence[type]]
) -> Callable[..., ctypes.CDLL | None]:
    """Return a loader of the library of a source, which takes the tensors of a call.

    The loader returns None if the source cannot be compiled, or if the compiled functions do not
    support one of the tensors: they must be float32, contiguous and on the CPU, or None.

    Args:
        source: a C file; it may include headers (`.h`) in its folder.
        fast_math: whether the compiler may reorder sums, for example.
        functions: argument types by function name; the functions return nothing.
    """

    @cache
    def load() -> ctypes.CDLL | None:
        try:
            loaded = _loaded(source, fast_math=fast_math)
        except (RunError, OSError) as error:
            _errors[source.name] = str(error)
            return None
        for name, types in functions.items():
            function = getattr(loaded, name)
            function.argtypes, function.restype = types, None
        return loaded

    def load_for(*tensors: Tensor | None) -> ctypes.CDLL | None:
        is_supported = uses_cpu_code(_CPU) and all(
            t.is_cpu and t.dtype == torch.float32 and t.is_contiguous()
            for t in tensors
            if t is not None
        )
        return load() if is_supported else None

    _loaders.append(load)
    SOURCES[source] = fast_math
    return load_for


def _loaded(source: Path, *, fast_math: bool) -> ctypes.CDLL:
    """Load the library of the package, or compile it if it is missing or does not fit here."""
    if path := prebuilt_file(source, _cpu()):
        with suppress(OSError):
            return ctypes.CDLL(str(path))
    return ctypes.CDLL(str(compiled_file(source, fast_math=fast_math)))


def pointers(*tensors: Tensor | None) -> list[int | None]:
    """Return the addresses of tensors for a compiled function; None for a missing one."""
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def slow_path_reason() -> str | None:
    """Return why PyTorch replaces the compiled functions; None if they can be used.

    Compile the sources of all imported modules if necessary.
    """
    for load in _loaders:
        load()
    return next(iter(_errors.values()), None)
