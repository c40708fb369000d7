"""Frozen parameters, and groups of parameters with settings of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from elmo_framework.compat.allennlp.rules import EMPTY, Context, Place
from elmo_framework.errors import allowed, shown

_FROZEN = {"requires_grad": False}
_SETTINGS = ("lr", "weight_decay")


def parameter_groups(here: Place, value: Any) -> Mapping[str, Any]:
    """Check the groups; `group_expressions` has what they become, by the names of parameters."""
    if not isinstance(value, list):
        here.problem(f"expected a list of [[regex, ...], {{...}}], not {shown(value)}")
        return {}
    if not value:
        here.note("dropped", EMPTY)
    for index, group in enumerate(value):
        _note(Place(here.context, f"{here.path}[{index}]"), group)
    return {}


def _note(here: Place, group: Any) -> None:
    match group:
        case [_, dict(settings)] if not settings:
            here.note("dropped", "it changes nothing")
        case [_, dict(settings)] if settings == _FROZEN:
            here.note("becomes", "trainer.no_grad")
        case [_, dict(settings)]:
            here.note("becomes", "trainer.parameter_groups")
            scheduler = here.context.value("trainer", "learning_rate_scheduler", "type")
            if scheduler == "noam" and "lr" in settings:
                here.at("lr").problem("has no effect with noam in AllenNLP; remove it")
            for key in settings.keys() - {*_SETTINGS}:
                here.at(key).problem(f"has no counterpart here; {allowed(key, _SETTINGS)}")
        case _:
            here.problem(f"expected [[regex, ...], {{...}}], not {shown(group)}")


def no_grad(here: Place, value: Any) -> Mapping[str, Any]:
    """Leave the expressions to `frozen_expressions`: they need the names of the parameters."""
    if value == []:
        here.note("dropped", EMPTY)
    return {}


Expressions: TypeAlias = list[tuple[Place, Any]]
"""Regular expressions, with their places in the config."""


def frozen_expressions(context: Context) -> Expressions:
    """Return the expressions of frozen parameters."""
    frozen = [expressions for expressions, settings in _groups(context) if settings == _FROZEN]
    listed = [each for expressions in frozen for each in expressions]
    here = Place(context).at("trainer").at("no_grad")
    patterns = context.value("trainer", "no_grad")
    if patterns is None:
        return listed
    if not isinstance(patterns, list):
        here.problem(f"expected a list of regular expressions, not {shown(patterns)}")
        return listed
    return listed + [
        (Place(context, f"{here.path}[{index}]"), each) for index, each in enumerate(patterns)
    ]


def group_expressions(context: Context) -> list[tuple[Expressions, Mapping[str, Any]]]:
    """Return the expressions of parameters with settings of their own, and these settings."""
    return [each for each in _groups(context) if each[1] and each[1] != _FROZEN]


def _groups(context: Context) -> Iterator[tuple[Expressions, Mapping[str, Any]]]:
    """Yield the expressions and the settings of each group of the optimizer."""
    here = Place(context).at("trainer").at("optimizer").at("parameter_groups")
    groups = context.value("trainer", "optimizer", "parameter_groups")
    for index, (patterns, settings) in enumerate(groups if isinstance(groups, list) else []):
        place = Place(context, f"{here.path}[{index}]")
        listed = patterns if isinstance(patterns, list) else [patterns]
        yield [(place, pattern) for pattern in listed], settings
