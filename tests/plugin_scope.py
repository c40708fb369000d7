"""Plugins that are gone again when a test is over."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from elmo_framework import components
from elmo_framework.compat.allennlp import models, parameter_names
from elmo_framework.config import registry
from elmo_framework.config.plugins import load_plugins

_ROOT = Path(__file__).parents[1]


@contextmanager
def without_plugins(*names: str) -> Iterator[None]:
    """Go on as in a process that has not imported these modules, and be one again afterwards.

    Args:
        names: of modules or packages, without a dot.
    """
    components.load()
    with (
        pytest.MonkeyPatch.context() as patch,
        mock.patch.dict(models.MODELS),
        mock.patch.dict(parameter_names.PARTS),
        mock.patch.dict(parameter_names.ADDED_NAMES),
    ):
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(registry, "_members", _members_without(names))
        for module in _imported(names):
            patch.delitem(sys.modules, module)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            for module in _imported(names):
                del sys.modules[module]


@contextmanager
def shipped_plugin(name: str) -> Iterator[None]:
    """Load a plugin of the folder `plugins`, in the root of the project as working directory."""
    with without_plugins("plugins", name), pytest.MonkeyPatch.context() as patch:
        patch.chdir(_ROOT)
        load_plugins([f"plugins.{name}"])
        yield


def _members_without(names: tuple[str, ...]) -> dict[type, dict[str, type]]:
    return {
        family: {
            name: member
            for name, member in named.items()
            if member.__module__.partition(".")[0] not in names
        }
        for family, named in registry._members.items()
    }


def _imported(names: tuple[str, ...]) -> list[str]:
    return [module for module in sys.modules if module.partition(".")[0] in names]
