"""Modules outside the package that register components of their own."""

from __future__ import annotations

import difflib
import importlib
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import TracebackType

from elmo_framework.common.errors import PluginError

_GROUP = "elmo_framework.plugins"


def load_plugins(names: Iterable[str], *, asked_by: str = "plugins") -> None:
    """Import the plugins of installed packages, and modules by name.

    Modules are looked for in the current folder first, as with `python -m`.

    Args:
        names: the modules.
        asked_by: who names them, for messages: a flag, a key of a config, a run.

    Raises:
        PluginError: a module is not there, or fails; the message holds its own traceback.
    """
    for entry in entry_points(group=_GROUP):
        _import(entry.module, asked_by=_installed(entry))
    here = str(Path.cwd())
    if sys.path[0] != here:
        sys.path.insert(0, here)
    for name in names:
        _import(name, asked_by=asked_by)


def plugin_paths(name: str) -> list[Path]:
    """Return the file of a module, or the folder of a package, by its name; nothing is imported.

    Modules are looked for as in `load_plugins`. None is returned for one that is not there.
    """
    places: Sequence[str] = [str(Path.cwd()), *sys.path]
    spec: ModuleSpec | None = None
    for part in name.split("."):
        # The path finder alone: `importlib.util.find_spec` imports the package of a module.
        spec = PathFinder.find_spec(part, places)
        places = (spec.submodule_search_locations if spec else None) or []
    if spec is None:
        return []
    return [Path(place) for place in places or (spec.origin,) if place]


def _installed(entry: EntryPoint) -> str:
    return f"the installed package {entry.dist.name if entry.dist else entry.name!r}"


def _import(name: str, *, asked_by: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise PluginError(f"{asked_by}: {name!r} is no name of a module, such as my_plugin.heads")
    try:
        importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, name):
            raise PluginError(_missing(error.name, name, asked_by)) from None
        shown = "".join(traceback.format_exception(error.with_traceback(_of_plugin(error))))
        raise PluginError(f"{asked_by}: the plugin {name!r} fails\n{shown.rstrip()}") from error


def _is_part(missing: str | None, name: str) -> bool:
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _missing(missing: str | None, name: str, asked_by: str) -> str:
    here = {path.stem for path in Path.cwd().iterdir() if path.suffix == ".py" or path.is_dir()}
    near = difflib.get_close_matches(str(missing), here, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{asked_by}: there is no module {missing!r} for the plugin {name!r}, neither installed "
        f"nor in {Path.cwd()}.{hint}"
    )


def _of_plugin(error: Exception) -> TracebackType | None:
    """Return the part of a traceback that begins in the plugin."""
    found = error.__traceback__
    while found and _is_ours(found.tb_frame.f_code.co_filename):
        found = found.tb_next
    return found


def _is_ours(filename: str) -> bool:
    return filename in (__file__, importlib.__file__) or filename.startswith("<frozen importlib")
