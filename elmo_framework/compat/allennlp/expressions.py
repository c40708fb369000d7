"""AllenNLP's regular expressions of names of parameters, translated to our names.

An expression is translated by what it matches among AllenNLP's names. It stays as it is where it
matches the same parameters here; otherwise it lists ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from elmo_framework.compat.allennlp.parameter_names import Pair
from elmo_framework.compat.allennlp.rules import EMPTY, Place
from elmo_framework.errors import allowed, shown


def translated(here: Place, pattern: Any, pairs: Sequence[Pair]) -> str | None:
    """Translate a regular expression; None where it matches nothing, or is none.

    Args:
        here: its place.
        pattern: the expression.
        pairs: of the model.
    """
    try:
        matches = re.compile(pattern).search
    except (TypeError, re.error, OverflowError, RecursionError) as error:
        here.problem(f"{shown(pattern)} is not a regular expression: {error}")
        return None
    ours = sorted({ours for _, ours in pairs if ours})
    wanted = {ours for theirs, ours in pairs if ours and matches(theirs)}
    if not wanted:
        here.note("dropped", f"{shown(pattern)} matches no parameter that is in the model here")
        return None
    if {name for name in ours if matches(name)} == wanted:
        return str(pattern)
    written = expression_of(wanted, ours)
    here.note("becomes", written)
    return written


def expression_of(wanted: set[str], ours: Sequence[str]) -> str:
    """Return an expression that matches exactly these names; short where numbers vary alone.

    Args:
        wanted: the names.
        ours: the names of all parameters of the model.
    """
    short = _one_of({_general(name) for name in wanted})
    if {name for name in ours if re.search(short, name)} == wanted:
        return short
    return _one_of({re.escape(name) for name in wanted})


def _one_of(patterns: set[str]) -> str:
    joined = "|".join(sorted(patterns))
    return f"^{joined}$" if len(patterns) == 1 else f"^({joined})$"


def _general(name: str) -> str:
    escaped = re.sub(r"\d+", r"\\d+", re.escape(name.removesuffix("_reverse")))
    return f"{escaped}(_reverse)?" if re.search(r"_l\d+(_reverse)?$", name) else escaped


_KEYS = {"initializer": ("regexes", "prevent_regexes"), "regularizer": ("regexes",)}
"""The keys of AllenNLP's applicators."""


def rules(
    here: Place, value: Any, pairs: Sequence[Pair], translate: Callable[[Place, Any], Any]
) -> list[Any]:
    """Translate an initializer or a regularizer: a list of pairs, or `regexes` of them.

    Args:
        here: its place; its key tells which of the two it is.
        value: the list, or an object with `regexes` and `prevent_regexes`.
        pairs: of the model.
        translate: translates what applies to the matching parameters.
    """
    listed, place, prevented = value, here, []
    if value in ([], {}):
        here.note("dropped", EMPTY)
    if isinstance(value, dict):
        parts = {key: _listed(here.at(key), inner) for key, inner in value.items()}
        listed, place = parts.get("regexes", []), here.at("regexes")
        prevented = parts.get("prevent_regexes", [])
    elif not isinstance(value, list):
        here.problem(f"expected a list of [regex, {{type: ...}}], not {shown(value)}")
        return []
    ours: list[Any] = []
    for index, pattern in enumerate(prevented):
        written = translated(_item(here.at("prevent_regexes"), index), pattern, pairs)
        ours += [] if written is None else [[written, "prevent"]]
    for index, rule in enumerate(listed):
        where = _item(place, index)
        if not (isinstance(rule, list) and len(rule) == 2):
            where.problem(f"expected [regex, {{type: ...}}], not {shown(rule)}")
            continue
        written, applied = translated(where, rule[0], pairs), translate(where, rule[1])
        ours += [] if written is None or applied is None else [[written, applied]]
    # There `prevent` always applies, here the first expression that matches.
    return sorted(ours, key=lambda rule: rule[1] not in ("prevent", {"type": "prevent"}))


def _listed(place: Place, value: Any) -> list[Any]:
    """Return the list of a key of an applicator; an empty one has no effect."""
    applicator = place.path.rpartition(".")[0].rpartition(".")[2]
    if place.key not in _KEYS[applicator]:
        place.problem(
            f"not a key of AllenNLP's {applicator}; {allowed(place.key, _KEYS[applicator])}"
        )
    elif value is None or value == []:
        place.note("dropped", EMPTY)
    elif isinstance(value, list):
        return value
    else:
        place.problem(f"expected a list, not {shown(value)}")
    return []


def _item(here: Place, index: int) -> Place:
    return Place(here.context, f"{here.path}[{index}]", str(index))
