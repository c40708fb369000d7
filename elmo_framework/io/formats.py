"""Format numbers of files: older ones are read, newer ones are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_framework.errors import DataError, ElmoFrameworkError, shown
from elmo_framework.version import VERSION


def check_format(
    content: Mapping[str, Any],
    *,
    name: str,
    supported: int,
    path: Path,
    error: type[ElmoFrameworkError] = DataError,
) -> None:
    """Refuse a file of a newer format; one without a number has format 1.

    Args:
        content: of the file: `format`, a number or a text that ends with it, and `elmo_framework`,
            the version that wrote it.
        name: of the format with its article, such as `a run`.
        supported: the newest format that is read.
        path: of the file.
        error: the class of the error.

    Raises:
        ElmoFrameworkError: it is newer; or no number.
    """
    found = content.get("format", 1)
    number = found.rpartition(" ")[2] if isinstance(found, str) else str(found)
    if not number.isdecimal():
        raise _error(error, f"'format' is {shown(found)}; expected a number", path)
    if int(number) <= supported:
        return
    writer = content.get("elmo_framework")
    written = f", written by elmo-framework {writer}" if writer else ""
    raise _error(
        error,
        f"{name} of format {number}{written}; version {VERSION} reads formats up to {supported}: "
        "pip install --upgrade elmo-framework",
        path,
    )


def _error(cls: type[ElmoFrameworkError], message: str, path: Path) -> ElmoFrameworkError:
    return DataError(message, path=path) if cls is DataError else cls(f"{path}: {message}")
