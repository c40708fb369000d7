"""The order in which Python searches for modules: the current folder last, and only for plugins.

Only modules that Python has already loaded are imported here: until `leave_current_folder` has run,
a file `json.py` in the current folder would be taken for the real module.
"""

import os
import sys


def leave_current_folder() -> None:
    """Remove the current folder from `sys.path`, where `python -m` puts it first."""
    if not sys.flags.safe_path and sys.path[:1] in ([""], [current_folder()]):
        del sys.path[0]


def append_current_folder() -> None:
    """Append the current folder to `sys.path`, for modules that are nowhere else.

    Python searches for namespace packages, without `__init__.py`, last: a module of the same name
    in the current folder takes precedence over them.
    """
    if current_folder() not in sys.path:
        sys.path.append(current_folder())


def installed_places() -> list[str]:
    """Return `sys.path` without the current folder, if that was appended."""
    return sys.path[:-1] if sys.path[-1:] == [current_folder()] else sys.path[:]


def current_folder() -> str:
    """Return the absolute path of the current folder, or "" if it has been removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib may not have been loaded
    except FileNotFoundError:
        return ""
