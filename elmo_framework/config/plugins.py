"""Import plugins: modules outside the package that register components."""

from __future__ import annotations

import importlib
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

from elmo_framework.errors import ConfigError, PluginError, hint, shown
from elmo_framework.io.archives import is_from_elsewhere
from elmo_framework.io.search_path import (
    append_current_folder,
    current_folder,
    installed_places,
)

_GROUP = "elmo_framework.plugins"


def load_plugins(names: Iterable[str], *, asked_by: str = "plugins") -> None:
    """Import the plugins of installed packages, and modules by name.

    With names, the current folder is appended to `sys.path`, also for later imports of the modules.

    Args:
        names: the modules.
        asked_by: the origin of the names for messages: a flag, a config key, a run.

    Raises:
        PluginError: a module is missing, or fails; the message has its traceback. Or an installed
            package and a file in the current folder have the same name.
    """
    for entry in installed_entries():
        package = entry.dist.name if entry.dist else entry.name
        _import(entry.module, asked_by=f"the installed package {package!r}")
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise PluginError(f"{asked_by}: {name!r} is not a module name such as my_plugin.heads")
        append_current_folder()
        _require_one_place(name, asked_by)
        _import(name, asked_by=asked_by)


def named_plugins(modules: object, *, source: Path) -> list[str]:
    """Check the plugins listed in a file of a run or a biLM.

    Such a folder may come from someone else, so modules inside it are not trusted. The file of an
    archive can name only plugins of installed packages, and modules that the user has named.

    Raises:
        PluginError: it is not a list of names, or a module that is not trusted has not been
            imported yet.
    """
    if not (isinstance(modules, list) and all(isinstance(name, str) for name in modules)):
        raise PluginError(f"{source}: plugins is {shown(modules)}; expected a list of strings")
    folder = source.parent.resolve()
    if is_from_elsewhere(folder):
        trusted = {*sys.modules, *(entry.module for entry in installed_entries())}
        for name in (name for name in modules if name not in trusted):
            raise PluginError(
                f"{source}: the archive names the plugin {name!r}, which no installed package "
                f"registers; pass --include-package {name} if you trust it"
            )
    for name in modules:
        for path in plugin_paths(name) if name not in sys.modules else ():
            if path.resolve().is_relative_to(folder):
                raise PluginError(
                    f"{source}: the plugin {name!r} would be imported from {path}, next to the "
                    f"file that lists it; pass --include-package {name} if you trust it"
                )
    return modules


def plugin_paths(name: str) -> list[Path]:
    """Return the file of a module, or the folder of a package, without importing it.

    Searches as `load_plugins` does; the result is empty if the module is missing.
    """
    specs = _specs(name, [*sys.path, current_folder()])
    if not specs:
        return []
    locations = specs[-1].submodule_search_locations or (specs[-1].origin,)
    return [Path(location) for location in locations if location]


def installed_entries() -> list[EntryPoint]:
    """Return the plugins of installed packages, without the current folder."""
    entries = dict[tuple[str, str], EntryPoint]()
    for package in distributions(path=installed_places()):
        for entry in package.entry_points.select(group=_GROUP):
            entries.setdefault((package.name, entry.name), entry)  # the first of two versions
    return [*entries.values()]


def _require_one_place(name: str, asked_by: str) -> None:
    """Raise PluginError for a name with one module in the current folder and one elsewhere."""
    top, specs = name.partition(".")[0], _specs(name, [current_folder()])
    # A folder without __init__.py has no file.
    here = next((spec.origin for spec in specs if spec.origin is not None), None)
    if here is None:
        return
    imported = find_spec(top)  # the current folder comes last
    origin = None if imported is None else imported.origin
    # A module that is built into Python has the origin "built-in".
    is_same = origin is not None and Path(origin).exists() and Path(origin).samefile(here)
    if origin is not None and not is_same:
        raise PluginError(
            f"{asked_by}: {top!r} is two modules: {origin}, which is installed, and {here}, in the "
            "current folder; rename the latter, or run from another folder"
        )


def _specs(name: str, locations: Sequence[str]) -> list[ModuleSpec]:
    """Return the specs of a module and its parent packages, outermost first; none if missing.

    Unlike `importlib.util.find_spec`, this does not import the parent packages.
    """
    specs = list[ModuleSpec]()
    for part in name.split("."):
        spec = PathFinder.find_spec(part, locations)
        if spec is None:
            return []
        specs.append(spec)
        locations = spec.submodule_search_locations or []
    return specs


def _import(name: str, *, asked_by: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise PluginError(_missing(error.name, name, asked_by)) from None
        lines = traceback.format_exception(error.with_traceback(_plugin_traceback(error)))
        message = f"{asked_by}: the plugin {name!r} fails\n{''.join(lines).rstrip()}"
        raise PluginError(message) from error


def _missing(missing: str | None, name: str, asked_by: str) -> str:
    here = {path.stem for path in Path.cwd().iterdir() if path.suffix == ".py" or path.is_dir()}
    return (
        f"{asked_by}: no module named {missing!r} for the plugin {name!r}, neither installed "
        f"nor in {Path.cwd()}.{hint(str(missing), sorted(here))} Install it, or run the command in "
        "its folder or with that folder in PYTHONPATH"
    )


def _plugin_traceback(error: Exception) -> TracebackType | None:
    """Return the part of a traceback that starts in the plugin."""
    trace, ours = error.__traceback__, (__file__, importlib.__file__, "<frozen importlib")
    while trace and trace.tb_frame.f_code.co_filename.startswith(ours):
        trace = trace.tb_next
    return trace


Packages: TypeAlias = dict[str, dict[str, Any]]
"""Maps the name of a package to its `version` and its `modules` that are plugins."""


def plugin_packages(modules: Iterable[str]) -> Packages:
    """Return the packages of plugins: those with an entry point, and those of some modules."""
    with_entry_points: dict[str, set[str]] = {}
    for entry in installed_entries():
        if entry.dist is not None:
            with_entry_points.setdefault(entry.dist.name, set()).add(entry.module)
    return {**packages_of(modules), **_described(with_entry_points)}


def packages_of(modules: Iterable[str]) -> Packages:
    """Return the installed packages of modules; a module in a plain folder has none."""
    names = list(modules)
    installed = packages_distributions() if names else {}
    by_package: dict[str, set[str]] = {}
    for module in names:
        for package in installed.get(module.partition(".")[0], []):
            by_package.setdefault(package, set()).add(module)
    return _described(by_package)


def _described(by_package: Mapping[str, set[str]]) -> Packages:
    return {
        name: {"version": version(name), "modules": sorted(modules)}
        for name, modules in sorted(by_package.items())
    }


@contextmanager
def naming_packages(recorded: Any, *, needed_by: str) -> Iterator[None]:
    """Add the packages that are not installed to errors about plugins and unknown names.

    Args:
        recorded: the result of `plugin_packages` when a run or a biLM was written, from JSON.
        needed_by: the run or the biLM, for the message.

    Raises:
        PluginError: in place of a `PluginError` or `ConfigError`, if packages are missing.
    """
    try:
        yield
    except (PluginError, ConfigError) as error:
        missing = dict(_missing_packages(recorded))
        if not missing:
            raise
        packages = ", ".join(f"{name} (modules: {modules})" for name, modules in missing.items())
        raise PluginError(
            f"{error}\n{needed_by} was made with plugins of packages that are not installed here: "
            f"{packages}; install them: pip install {' '.join(missing)}"
        ) from error


def _missing_packages(recorded: Any) -> Iterator[tuple[str, str]]:
    """Yield `NAME==VERSION` and the modules of recorded packages that are not installed."""
    for name, package in recorded.items() if isinstance(recorded, Mapping) else ():
        is_installed = name and any(distributions(name=name, path=installed_places()))
        if not isinstance(package, Mapping) or is_installed:
            continue
        modules = package.get("modules")
        shown = ", ".join(map(str, modules)) if isinstance(modules, list) else "unknown"
        yield f"{name}=={package.get('version')}", shown
