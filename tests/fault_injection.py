"""Configurations with one thing changed at random, for what has to judge them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

_NUMBERS = [0, -1, 2.0, 0.5, 10**9, 1e20]
_LISTS = [[], [1, 2], ["console"]]
_OBJECTS = [
    {},
    {"x": 1},
    {"type": None},
    {"type": "adam"},
    {"type": "lstm"},
    {"steps": 1, "start": 0.5},
]
_VALUES: list[Any] = [None, True, "", "nonsense", "lstm", *_NUMBERS, *_LISTS, *_OBJECTS]


def damaged(raw: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A copy with one value gone, renamed, replaced, or put into or taken out of a list."""
    copy = deepcopy(raw)
    *parents, last = chance.choice(list(_places(copy)))
    node: Any = copy
    for key in parents:
        node = node[key]
    held = node.pop(last)
    replacements = [held, [held], *_VALUES, *(held if isinstance(held, list) else [])]
    match chance.randrange(4), node:
        case 0, _:
            pass
        case 1, dict():
            node[chance.choice([f"{last}s", str(last)[:-1], "type", "vocabularies"])] = held
        case _, dict():
            node[last] = chance.choice(replacements)
        case _:
            node.insert(last, chance.choice(replacements))
    return copy


def _places(raw: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all values below `raw`."""
    pairs = (
        raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    )
    for key, held in pairs:
        yield (*path, key)
        yield from _places(held, (*path, key))
