"""Paths that name a file inside an archive: `(vectors.zip)#glove.6B.50d.txt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_INNER = re.compile(r"(.*)\(([^()]+)\)#(.+)", re.DOTALL)


class ArchivePath(NamedTuple):
    """A file, and the file inside it that is meant.

    Attributes:
        file: what lies on the disk.
        inner: the name inside; None where the whole file is meant.
    """

    file: Path
    inner: str | None


def archive_path(path: Path) -> ArchivePath:
    """Take a path apart.

    What stands before the bracket is the folder of the archive, so that such a path can be made
    absolute as any other.
    """
    match = _INNER.fullmatch(str(path))
    if match is None:
        return ArchivePath(path, None)
    folder, archive, inner = match.groups()
    return ArchivePath(Path(folder) / archive, inner)
