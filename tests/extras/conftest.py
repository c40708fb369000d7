"""Programs of the machine that these tests need and the main suite does not."""

from __future__ import annotations

import shutil

import pytest


def require_program(*names: str) -> str:
    """Return the path of the first program that is installed; skip the test without any."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"{' or '.join(names)} is not installed")
