"""Modules outside the package that register components of their own."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import (
    EntryPoint,
    distributions,
    packages_distributions,
    version,
)
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from elmo_framework.errors import ConfigError, PluginError, shown

_GROUP = "elmo_framework.plugins"


def load_plugins(names: Iterable[str], *, asked_by: str = "plugins") -> None:
    """Import the plugins of installed packages, and modules by name.

    Modules are looked for in the current folder too, last; it stays on `sys.path`, for what they
    import later. Without names it is not looked into.

    Args:
        names: the modules.
        asked_by: who names them, for messages: a flag, a key of a config, a run.

    Raises:
        PluginError: a module is not there, or fails; the message holds its own traceback. Or an
            installed package and a file in the current folder both have its name.
    """
    for entry in installed_entries():
        _import(entry.module, asked_by=_installed(entry))
    for name in names:
        _require_module_name(name, asked_by)
        append_current_folder()
        _require_one_place(name, asked_by)
        _import(name, asked_by=asked_by)


def named_plugins(written: object, *, source: Path) -> list[str]:
    """Return the plugins that a file of a run or of a biLM names.

    Such a folder may come from someone else. So it does not bring its own code along: none of the
    modules lies in it.

    Args:
        written: the value of `plugins` in the file.
        source: the file.

    Raises:
        PluginError: it is no list of names, or a module is in the folder of the file and has not
            been imported yet.
    """
    if not (isinstance(written, list) and all(isinstance(name, str) for name in written)):
        raise PluginError(f"{source}: plugins is {shown(written)}; expected a list of strings")
    folder = source.parent.resolve()
    for name in written:
        for path in plugin_paths(name) if name not in sys.modules else ():
            if path.resolve().is_relative_to(folder):
                raise PluginError(
                    f"{source}: the plugin {name!r} would be imported from {path}, beside the "
                    f"file that names it; pass --include-package {name} if you trust it"
                )
    return written


def plugin_paths(name: str) -> list[Path]:
    """Return the file of a module, or the folder of a package, by its name; nothing is imported.

    Modules are looked for as in `load_plugins`. None is returned for one that is not there.
    """
    specs = _specs(name, [*sys.path, current_folder()])
    if not specs:
        return []
    places = specs[-1].submodule_search_locations or (specs[-1].origin,)
    return [Path(place) for place in places if place]


def installed_entries() -> list[EntryPoint]:
    """Return the plugins of installed packages.

    What lies in the current folder is not installed, even where modules may be imported from it.
    """
    entries = dict[tuple[str, str], EntryPoint]()
    for package in distributions(path=installed_places()):
        for entry in package.entry_points.select(group=_GROUP):
            entries.setdefault((package.name, entry.name), entry)  # of two versions the first
    return [*entries.values()]


def _installed(entry: EntryPoint) -> str:
    return f"the installed package {entry.dist.name if entry.dist else entry.name!r}"


def _require_module_name(name: str, asked_by: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")):
        raise PluginError(f"{asked_by}: {name!r} is no name of a module, such as my_plugin.heads")


def _require_one_place(name: str, asked_by: str) -> None:
    """Refuse a name that means one module in the current folder and another elsewhere."""
    here, top = _file_here(name), name.partition(".")[0]
    if here is None:
        return
    imported = find_spec(top)  # the current folder comes last
    origin = None if imported is None else imported.origin
    if origin is not None and not _is_same_file(origin, here):
        raise PluginError(
            f"{asked_by}: {top!r} is two modules: {origin}, which is installed, and {here}, in the "
            "current folder; rename the latter, or run from another folder"
        )


def _file_here(name: str) -> str | None:
    """Return the file of the current folder that a dotted name leads to first, if any."""
    specs = _specs(name, [current_folder()])
    # A folder without __init__.py has no file.
    return next((spec.origin for spec in specs if spec.origin is not None), None)


def _specs(name: str, places: Sequence[str]) -> list[ModuleSpec]:
    """Return where a module and the packages above it are, outermost first; none if it is missing.

    Nothing is imported: `importlib.util.find_spec` imports the package of a module.
    """
    specs = list[ModuleSpec]()
    for part in name.split("."):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return []
        specs.append(spec)
        places = spec.submodule_search_locations or []
    return specs


def _is_same_file(first: str, second: str) -> bool:
    # A module that is built into Python has the origin "built-in".
    return Path(first).exists() and Path(first).samefile(second)


def _import(name: str, *, asked_by: str) -> None:
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


Packages: TypeAlias = dict[str, dict[str, Any]]
"""By the name of a package its `version` and the `modules` of it that are plugins."""


def plugin_packages(modules: Iterable[str]) -> Packages:
    """Return the packages of plugins: those with an entry point, and those of some modules."""
    with_entry_points: dict[str, set[str]] = {}
    for entry in installed_entries():
        if entry.dist is not None:
            with_entry_points.setdefault(entry.dist.name, set()).add(entry.module)
    return {**packages_of(modules), **_described(with_entry_points)}


def packages_of(modules: Iterable[str]) -> Packages:
    """Return the installed packages that modules belong to; those in a mere folder have none."""
    named = list(modules)
    installed = packages_distributions() if named else {}
    found: dict[str, set[str]] = {}
    for module in named:
        for package in installed.get(module.partition(".")[0], []):
            found.setdefault(package, set()).add(module)
    return _described(found)


def _described(found: Mapping[str, set[str]]) -> Packages:
    return {
        name: {"version": version(name), "modules": sorted(modules)}
        for name, modules in sorted(found.items())
    }


@contextmanager
def naming_packages(recorded: Any, *, needed_by: str) -> Iterator[None]:
    """Add to an error about a plugin or an unknown name the packages that are not installed.

    Args:
        recorded: what `plugin_packages` returned when a run or a biLM was written, read from JSON.
        needed_by: the run or the biLM, for the message.

    Raises:
        PluginError: instead of a `PluginError` or `ConfigError` where packages are missing.
    """
    try:
        yield
    except (PluginError, ConfigError) as error:
        missing = dict(_missing_packages(recorded))
        if not missing:
            raise
        listed = ", ".join(f"{name} (modules: {held})" for name, held in missing.items())
        raise PluginError(
            f"{error}\n{needed_by} was made with plugins of packages that are not installed here: "
            f"{listed}; install them: pip install {' '.join(missing)}"
        ) from error


def _missing_packages(recorded: Any) -> Iterator[tuple[str, str]]:
    """Yield each recorded package that is not installed, with its version, and its modules."""
    for name, package in recorded.items() if isinstance(recorded, Mapping) else ():
        if not isinstance(package, Mapping) or _is_installed(name):
            continue
        modules = package.get("modules")
        shown = ", ".join(map(str, modules)) if isinstance(modules, list) else "unknown"
        yield f"{name}=={package.get('version')}", shown


def _is_installed(name: str) -> bool:
    return bool(name) and any(distributions(name=name, path=installed_places()))
