"""Differences between two filled configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from elmo_framework.errors import dotted

Change: TypeAlias = tuple[str, Any, Any]
"""The dotted path of a value in which two configurations differ, and the value in both; None if it
is missing."""


def changes(
    before: Any, now: Any, path: str = "", *, given: Mapping[str, Any] | None = None
) -> Iterator[Change]:
    """Yield where two filled configurations differ; lists are compared as a whole.

    A key that an earlier version did not have is no difference while it is off, null or false, or
    if `given` does not set it: its default means what that version did.

    Args:
        before: all values of the earlier configuration.
        now: all values of the later one.
        path: where both are.
        given: the later configuration as its user wrote it; None if it is not known.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            is_default = given is not None and given.get(key) is None
            if key not in before and (now[key] is False or is_default):
                continue
            inner = None if given is None else _block(given.get(key))
            yield from changes(before.get(key), now.get(key), dotted(path, key), given=inner)
    elif before != now:
        yield path, before, now


def _block(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """List where two configurations differ: `path: value before -> value now`."""
    return [shown_change(change) for change in changes(before, now, path)]


def shown_change(change: Change) -> str:
    """Format a difference: `path: value before -> value now`, as in a config."""
    path, before, now = change
    return f"{path}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_at(raw: Any, path: str) -> Any:
    """Return the value of a configuration at a dotted path; None if it has none."""
    for key in path.split("."):
        if not isinstance(raw, dict):
            return None
        raw = raw.get(key)
    return raw
