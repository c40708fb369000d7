"""Standard input, output and error where a shell has closed one, or another encoding is set."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import BinaryIO, NoReturn, TextIO, cast

_STANDARD_FILES = (0, 1, 2)


def open_streams() -> None:
    """Let something stand in for standard streams that are closed, as by `<&-` in a shell.

    Reading standard input raises an OSError then, and what goes to standard error is dropped. The
    bytes of a file's name that are no text are written to standard output as they are.
    """
    for number in _STANDARD_FILES:
        _occupy(number)
    sys.stdin = sys.stdin or cast(TextIO, _ClosedInput())
    sys.stderr = sys.stderr or cast(TextIO, _ClosedError())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def unwritable(error: UnicodeEncodeError) -> str:
    """Say what standard output cannot hold, in its encoding."""
    character = error.object[error.start]
    return (
        f"standard output has the encoding {error.encoding!r}, which has no {character!a}; set "
        "PYTHONIOENCODING=utf-8"
    )


def _occupy(number: int) -> None:
    """Keep a file that is opened later from getting the number of a closed stream."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number


class _ClosedInput(io.TextIOBase):
    """Standard input that is closed."""

    @property
    def buffer(self) -> BinaryIO:
        """Raise an OSError."""
        self._refuse()

    def read(self, size: int | None = -1) -> str:
        """Raise an OSError."""
        self._refuse()

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        """Raise an OSError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(errno.EBADF, "it is closed; give a file, or a pipe", "standard input")


class _ClosedError(io.TextIOBase):
    """Standard error that is closed."""

    def write(self, text: str, /) -> int:
        """Drop a text."""
        return len(text)
