"""Record the installed packages that plugins come from, and name those that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import (
    distributions,
    packages_distributions,
    version,
)
from typing import Any, TypeAlias

from elmo_framework.common.errors import ConfigError, PluginError
from elmo_framework.common.plugins import installed_entries
from elmo_framework.common.search_path import installed_places

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
        missing = dict(_missing(recorded))
        if not missing:
            raise
        listed = ", ".join(f"{name} (modules: {held})" for name, held in missing.items())
        raise PluginError(
            f"{error}\n{needed_by} was made with plugins of packages that are not installed here: "
            f"{listed}; install them: pip install {' '.join(missing)}"
        ) from error


def _missing(recorded: Any) -> Iterator[tuple[str, str]]:
    """Yield each recorded package that is not installed, with its version, and its modules."""
    for name, package in recorded.items() if isinstance(recorded, Mapping) else ():
        if not isinstance(package, Mapping) or _is_installed(name):
            continue
        modules = package.get("modules")
        shown = ", ".join(map(str, modules)) if isinstance(modules, list) else "unknown"
        yield f"{name}=={package.get('version')}", shown


def _is_installed(name: str) -> bool:
    return bool(name) and any(distributions(name=name, path=installed_places()))
