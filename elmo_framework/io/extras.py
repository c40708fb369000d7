"""Optional dependencies: packages that an extra of this one installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from elmo_framework.errors import MissingExtraError


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Args:
        module: its name.
        extra: the extra in `setup.cfg` that installs it.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{error.name} is not installed; run: pip install 'elmo-framework[{extra}]'"
        ) from None
