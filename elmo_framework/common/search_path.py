"""Where Python looks for modules: in the current folder for plugins only, and there last.

Nothing is imported here that Python has not loaded by itself: until `leave_current_folder` has
run, a file `json.py` in the current folder would be taken for the real module.
"""

import os
import sys


def leave_current_folder() -> None:
    """Remove the current folder from `sys.path`, where `python -m` puts it first."""
    if not sys.flags.safe_path and sys.path[:1] in ([""], [current_folder()]):
        del sys.path[0]


def append_current_folder() -> None:
    """Let modules that are nowhere else be imported from the current folder, also later on.

    Python looks for a namespace package, which has no `__init__.py`, last of all: a module of its
    name in the current folder wins.
    """
    if current_folder() not in sys.path:
        sys.path.append(current_folder())


def installed_places() -> list[str]:
    """Return `sys.path` without the current folder, if that was appended."""
    return sys.path[:-1] if sys.path[-1:] == [current_folder()] else sys.path[:]


def current_folder() -> str:
    """Return the absolute path of the current folder; an empty one if that has been removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib may not have been loaded
    except FileNotFoundError:
        return ""
