"""Change single values of a configuration by dotted keys, or merge nested objects into it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from elmo_framework.console import plural
from elmo_framework.errors import ConfigError, Problem, allowed, dotted, shown

_log = logging.getLogger(__name__)

_MAX_DEPTH = 100
"""Far above that of any config; the check is recursive, and Python limits its depth."""

_KEY = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")


def with_overrides(
    raw: dict[str, Any],
    overrides: Sequence[str],
    *,
    source: str,
    evaluate: Callable[[str], Any],
) -> dict[str, Any]:
    """Return a configuration with changes applied in order.

    The last key may be new; every key before it must exist. A string on the way is the short form
    of a component, and becomes `{type: STRING}`. An object replaces the previous value completely.

    Args:
        raw: the configuration.
        overrides: `dotted.key=VALUE`, VALUE being JSON or else a string; or an object of
            jsonnet whose keys may be dotted.
        source: the file of the configuration, for messages.
        evaluate: evaluates jsonnet to JSON types.

    Raises:
        ConfigError: with every override that is malformed or matches no key.
    """
    changed = deepcopy(raw)
    problems: list[Problem] = []
    for override in overrides:
        try:
            pairs = list(_pairs(override, evaluate))
        except ConfigError as error:
            problems += error.problems
            continue
        for key, value in pairs:
            try:
                _warn_of_loss(key, _apply(changed, key, value), value)
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(f"{source} with --overrides", problems)
    return changed


def with_merged(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with changes in the form of an object.

    A key with dots or brackets replaces a value, as in `with_overrides`. Any other key is merged:
    an object changes the keys that it has, unless it has another `type` than the object before it.

    Raises:
        ConfigError: with every dotted key that matches nothing.
    """
    changed = deepcopy(dict(raw))
    problems: list[Problem] = []
    for key, value in changes.items():
        if not re.search(r"[.\[]", key):
            changed[key] = _merged(changed.get(key), value)
            continue
        try:
            _apply(changed, key, deepcopy(value))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError("overrides", problems)
    return changed


def _merged(before: Any, change: Any) -> Any:
    if isinstance(before, str) and isinstance(change, dict) and "type" not in change:
        before = {"type": before}  # the short form of a component
    if not (isinstance(before, dict) and isinstance(change, dict)):
        return deepcopy(change)
    if change.get("type", before.get("type")) != before.get("type"):
        return deepcopy(change)
    merged = {key: _merged(before.get(key), value) for key, value in change.items()}
    return {**before, **merged}


def _pairs(override: str, evaluate: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    try:
        override.encode()
    except UnicodeEncodeError as error:
        raise _refusal(shown(override), "is not UTF-8") from error
    if override.lstrip().startswith("{"):
        changes = evaluate(override)
        if not isinstance(changes, dict):
            raise _refusal(override, f"expected an object, not {shown(changes)}")
        yield from changes.items()
        return
    key, equals, text = override.partition("=")
    if not equals:
        raise _refusal(override, "is neither dotted.key=VALUE nor an object {...}")
    too_deep = _refusal(key.strip(), f"has more than {_MAX_DEPTH} brackets inside each other")
    try:
        value = _value(text)
        if _depth(value) > _MAX_DEPTH:
            raise too_deep
    except RecursionError as error:
        raise too_deep from error
    yield key.strip(), value


def _value(text: str) -> Any:
    """Read JSON; other text is a string, also NaN, Infinity and 1e400."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return text
    return value


def _depth(value: object) -> int:
    """Return how many objects and lists are inside each other."""
    match value:
        case dict():
            return 1 + max(map(_depth, value.values()), default=0)
        case list():
            return 1 + max(map(_depth, value), default=0)
    return 0


def _apply(raw: dict[str, Any], key: str, value: Any) -> Any:
    """Set a value, and return the one before it."""
    if not _KEY.fullmatch(key):
        raise _refusal(key, "not a dotted key such as trainer.num_epochs or callbacks[0].type")
    *parents, last = re.findall(r"[^.\[\]]+", key)
    node: Any = raw
    path = ""
    for parent in parents:
        index = _index(node, parent, key, path, may_add=False)
        if isinstance(node[index], str):
            node[index] = {"type": node[index]}
        node, path = node[index], dotted(path, index)
    index = _index(node, last, key, path, may_add=True)
    before = node.get(index) if isinstance(node, dict) else node[index]
    node[index] = value
    return before


def _index(node: Any, part: str, key: str, path: str, *, may_add: bool) -> str | int:
    """Return the key or index in `node` that one part of a dotted key means."""
    here = path or "the configuration"
    match node:
        case dict() if may_add or part in node:
            return part
        case dict():
            advice = f" To add it, pass a whole object: {dotted(path, part)}={{...}}"
            if not path and (place := _place(node, part)):
                advice = f" Did you mean {place + key.removeprefix(part)!r}?"
            raise _refusal(key, f"{here} has no key {part!r}; {allowed(part, node)}{advice}")
        case list() if part.isdecimal() and int(part) < len(node):
            return int(part)
        case list():
            items = plural(len(node), "item")
            raise _refusal(key, f"{here} is a list of {items}, numbered from 0; no item {part!r}")
        case _:
            raise _refusal(key, f"{here} is {shown(node)}, which has no keys")


def _place(node: Any, part: str, path: str = "") -> str | None:
    """Return the dotted path of the first key below `node` that is `part`."""
    children = node.items() if isinstance(node, dict) else ()
    for key, child in children:
        here = dotted(path, key)
        place = here if key == part else _place(child, part, here)
        if place is not None:
            return place
    return None


def _warn_of_loss(key: str, old: object, new: object) -> None:
    if (
        isinstance(old, dict)
        and isinstance(new, dict)
        and (lost := sorted(old.keys() - new.keys()))
    ):
        message = "--overrides: replacing %s drops %s; use dotted keys to change single keys"
        _log.warning(message, key, ", ".join(lost))


def _refusal(key: str, message: str) -> ConfigError:
    return ConfigError("--overrides", [Problem(key, message)])
