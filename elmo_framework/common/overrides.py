"""Changes to a configuration from the command line: `trainer.num_epochs=5`, `{"a.b": 1}`."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NoReturn

from elmo_framework.common.errors import ConfigError, Problem, allowed, dotted, shown

_KEY = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")

logger = logging.getLogger(__name__)


def with_overrides(
    raw: dict[str, Any],
    overrides: Sequence[str],
    *,
    source: str,
    evaluate: Callable[[str], Any],
) -> dict[str, Any]:
    """Return a configuration with changes applied in order.

    A last key that is not there is added; every key before it must be there. A string with a key
    below it names a component, and becomes the object that means the same. An object replaces the
    whole of what was at its key.

    Args:
        raw: the configuration.
        overrides: `dotted.key=VALUE`, VALUE being JSON or else a string; or an object of
            jsonnet whose keys may be dotted.
        source: the file of the configuration, for messages.
        evaluate: makes JSON types of jsonnet.

    Raises:
        ConfigError: with every override that is malformed or touches nothing.
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
                _apply(changed, key, value)
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(f"{source} with --overrides", problems)
    return changed


def _pairs(override: str, evaluate: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    if override.lstrip().startswith("{"):
        yield from evaluate(override).items()
        return
    key, equals, text = override.partition("=")
    if not equals:
        raise _refusal(override, "is neither dotted.key=VALUE nor an object {...}")
    yield key.strip(), _value(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except ValueError:
        return text


def _no_constant(name: str) -> NoReturn:
    """Take NaN and Infinity as strings: they are not JSON."""
    raise ValueError(name)


def _finite(text: str) -> float:
    """Take a number beyond the largest float, as 1e400, as a string too."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


def _apply(raw: dict[str, Any], key: str, value: Any) -> None:
    if not _KEY.fullmatch(key):
        raise _refusal(key, "is no dotted key such as trainer.num_epochs or callbacks[0].type")
    *parents, last = re.findall(r"[^.\[\]]+", key)
    node: Any = raw
    path = ""
    for parent in parents:
        place = _place(node, parent, key, path, may_add=False)
        if isinstance(node[place], str):
            node[place] = {"type": node[place]}
        node, path = node[place], dotted(path, place)
    place = _place(node, last, key, path, may_add=True)
    if isinstance(node, dict):
        _warn_of_loss(key, node.get(last), value)
    node[place] = value


def _place(node: Any, part: str, key: str, path: str, *, may_add: bool) -> str | int:
    """Return where in `node` one part of a key points."""
    here = path or "the configuration"
    match node:
        case dict() if may_add or part in node:
            return part
        case dict():
            whole = f" To add it, give all of it: {dotted(path, part)}={{...}}"
            raise _refusal(key, f"{here} has no key {part!r}; {allowed(part, node)}{whole}")
        case list() if part.isdecimal() and int(part) < len(node):
            return int(part)
        case list():
            raise _refusal(key, f"{here} is a list of {len(node)}, from 0; it has no item {part!r}")
        case _:
            raise _refusal(key, f"{here} is {shown(node)}, which has no keys")


def _warn_of_loss(key: str, old: object, new: object) -> None:
    if (
        isinstance(old, dict)
        and isinstance(new, dict)
        and (lost := sorted(old.keys() - new.keys()))
    ):
        message = "--overrides: %s is replaced as a whole, which drops %s; dotted keys drop nothing"
        logger.warning(message, key, ", ".join(lost))


def _refusal(key: str, message: str) -> ConfigError:
    return ConfigError("--overrides", [Problem(key, message)])
