"""The files that the arguments of a command name indirectly: by a run, a biLM, a plugin."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from elmo_framework.config.plugins import plugin_paths
from elmo_framework.io.outputs import Input

_LOADED = ("model", "dataset_reader", "validation_dataset_reader")
"""The keys of a run's config that are built again to use it; training data is not read again."""


def run_inputs(run: Path, name: str) -> list[Input]:
    """Return the folder of a run, its plugins, and what its model and readers load: vectors, biLMs.

    Args:
        run: the folder; one that cannot be read is reported by whoever loads it.
        name: of the argument.
    """
    try:
        config = json.loads((run / "filled_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [Input(run, name)]
    if not isinstance(config, dict):
        return [Input(run, name)]
    parts = {key: config[key] for key in _LOADED if key in config}
    places = [*paths_in(parts), *_moved(run)]
    paths = [Input(path, f"{key} of {name}") for key, path in places]
    plugins = plugin_inputs(config.get("plugins", ()), f"a plugin of {name}")
    return [Input(run, name), *paths, *plugins]


def bilm_inputs(bilm: str, name: str) -> list[Input]:
    """Return the folder of a biLM; none for the name of one, whose files are in the cache."""
    return [Input(Path(bilm), name)] if Path(bilm).is_dir() else []


def run_bilm_inputs(bilms: Iterable[str]) -> list[Input]:
    """Return the folders of the biLMs that `--bilm` names."""
    return [found for bilm in bilms for found in bilm_inputs(bilm, "--bilm")]


def plugin_inputs(modules: Iterable[str], name: str) -> list[Input]:
    """Return the files and folders of plugins, without importing them."""
    return [Input(path, name) for module in modules for path in plugin_paths(str(module))]


def _moved(run: Path) -> Iterator[tuple[str, Path]]:
    """Yield where the biLMs of a run are if they were moved together with it, with their keys."""
    try:
        recorded = json.loads((run / "metadata.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    references = recorded.get("references") if isinstance(recorded, dict) else None
    for key, value in _strings(references):
        if key.endswith(".relative"):
            yield key.removesuffix(".relative"), run / value


def paths_in(value: Any) -> Iterator[tuple[str, Path]]:
    """Yield the absolute paths in JSON, with their dotted keys; a filled config has no others."""
    yield from ((key, Path(text)) for key, text in _strings(value) if Path(text).is_absolute())


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings in JSON, with their dotted keys."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strings(inner, f"{key}[{index}]")
    elif isinstance(value, str):
        yield key, value
