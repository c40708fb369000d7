"""Standard streams that are files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def standard_output_to(path: Path) -> Iterator[None]:
    """Let standard output be a file, as after `>> FILE`."""
    before = os.dup(1)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)
