"""Where what can be made or downloaded again is kept."""

from __future__ import annotations

import os
from pathlib import Path

from elmo_framework.common.errors import RunError

_VARIABLE = "ELMO_CACHE_ROOT"


def cache_root() -> Path:
    """Return the folder of the cache: `$ELMO_CACHE_ROOT`, or `~/.cache/elmo_framework`.

    It need not be there yet.

    Raises:
        RunError: there is no home folder, of this user or of the one whom the variable names.
    """
    chosen = os.environ.get(_VARIABLE)
    try:
        return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "elmo_framework"
    except RuntimeError as error:
        reason = f"it is {chosen!r}, of a user who is not known" if chosen else "you have no home"
        raise RunError(
            f"set the environment variable {_VARIABLE} to the folder of the cache: {reason}"
        ) from error
