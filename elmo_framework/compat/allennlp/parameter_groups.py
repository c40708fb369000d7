"""Frozen parameters: `no_grad`, and groups of an optimizer that are frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.rules import EMPTY, Context, Place
from elmo_framework.errors import shown


def parameter_groups(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop groups that change nothing or freeze; other rates of groups have no counterpart."""
    groups = value if isinstance(value, list) else [None]
    settings = [
        group[1] if isinstance(group, list) and len(group) == 2 else None for group in groups
    ]
    if not all(each in ({}, {"requires_grad": False}) for each in settings):
        advice = "use one rate, or trainer.unfreezing for the layers of a biLM that is trained"
        here.problem(f"groups with other settings than requires_grad have no counterpart; {advice}")
    elif any(settings):
        here.note("becomes", "trainer.no_grad, for the groups with requires_grad: false")
    else:
        here.note("dropped", "its groups change nothing")
    return {}


def no_grad(here: Place, value: Any) -> Mapping[str, Any]:
    """Leave the expressions to `frozen_expressions`: they need the names of the parameters."""
    if value == []:
        here.note("dropped", EMPTY)
    return {}


def frozen_expressions(context: Context) -> list[tuple[Place, Any]]:
    """Return the regular expressions of frozen parameters, with their places in the config."""
    here = Place(context).at("trainer")
    groups = context.value("trainer", "optimizer", "parameter_groups")
    place = here.at("optimizer").at("parameter_groups")
    listed = [
        (Place(context, f"{place.path}[{index}]"), pattern)
        for index, group in enumerate(groups if isinstance(groups, list) else [])
        if group[1]
        for pattern in (group[0] if isinstance(group[0], list) else [group[0]])
    ]
    patterns = context.value("trainer", "no_grad") or []
    if not isinstance(patterns, list):
        here.at("no_grad").problem(f"expected a list of regular expressions, not {shown(patterns)}")
        return listed
    place = here.at("no_grad")
    return listed + [
        (Place(context, f"{place.path}[{index}]"), each) for index, each in enumerate(patterns)
    ]
