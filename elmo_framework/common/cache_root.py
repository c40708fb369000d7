"""Where what can be made or downloaded again is kept."""

from __future__ import annotations

import os
from pathlib import Path

_VARIABLE = "ELMO_CACHE_ROOT"


def cache_root() -> Path:
    """Return the folder of the cache: `$ELMO_CACHE_ROOT`, or `~/.cache/elmo_framework`.

    It need not be there yet.
    """
    chosen = os.environ.get(_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "elmo_framework"
