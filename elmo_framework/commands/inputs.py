"""Find the input files behind the arguments of a command: of runs, biLMs and plugins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elmo_framework.config.plugins import plugin_paths
from elmo_framework.io.outputs import Input
from elmo_framework.io.remote import RemotePath

_LOADED = ("model", "dataset_reader", "validation_dataset_reader", "test_dataset_reader")
"""The config keys that are built when a run is loaded; training data is not read again."""


def run_inputs(run: Path, name: str) -> list[Input]:
    """Return a run, its plugins, and the files of its model and readers, such as vectors and biLMs.

    Args:
        run: the folder or the archive; an unreadable one is reported when it is loaded.
        name: of the argument.
    """
    if isinstance(run, RemotePath):
        return [Input(run, name)]
    try:
        config = json.loads((run / "filled_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [Input(run, name)]
    if not isinstance(config, dict):
        return [Input(run, name)]
    parts = {key: config[key] for key in _LOADED if key in config}
    paths = [Input(path, f"{key} of {name}") for key, path in [*paths_in(parts), *_moved(run)]]
    plugins = plugin_inputs(config.get("plugins", ()), f"a plugin of {name}")
    return [Input(run, name), *paths, *plugins]


def bilm_inputs(bilm: str, name: str) -> list[Input]:
    """Return the folder or archive of a biLM; none for a name, whose files are in the cache."""
    return [Input(Path(bilm), name)] if Path(bilm).exists() else []


def run_bilm_inputs(bilms: Iterable[str]) -> list[Input]:
    """Return the folders of biLMs given by `--bilm`."""
    return [folder for bilm in bilms for folder in bilm_inputs(bilm, "--bilm")]


def plugin_inputs(modules: Iterable[str], name: str) -> list[Input]:
    """Return the files and folders of plugins, without importing them."""
    return [Input(path, name) for module in modules for path in plugin_paths(str(module))]


def _moved(run: Path) -> Iterator[tuple[str, Path]]:
    """Yield the keys and paths of biLMs that were moved together with a run."""
    try:
        recorded = json.loads((run / "metadata.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    references = recorded.get("references") if isinstance(recorded, dict) else None
    for key, value in _strings(references):
        if key.endswith(".relative"):
            yield key.removesuffix(".relative"), run / value


def paths_in(value: Any) -> Iterator[tuple[str, Path]]:
    """Yield dotted keys and absolute paths in JSON; a filled config has no relative paths."""
    yield from ((key, Path(text)) for key, text in _strings(value) if Path(text).is_absolute())


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{key}[{index}]")
    elif isinstance(value, str):
        yield key, value
