"""Apply initializers and regularizers to parameters by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from elmo_framework.config.patterns import no_match
from elmo_framework.config.types import Component, Lazy, refuse
from elmo_framework.errors import Problem
from elmo_framework.model.initializer import Initializers, Prevent
from elmo_framework.model.part import parts_of
from elmo_framework.model.regularizer import Regularizer, Regularizers
from elmo_framework.nn.part import gates_of

ComponentT = TypeVar("ComponentT", bound=Component)

_log = logging.getLogger(__name__)


Penalties: TypeAlias = Sequence[tuple[nn.Parameter, Regularizer]]


def initialize(model: nn.Module, rules: Initializers | None) -> None:
    """Fill the parameters of a model that match a rule.

    Parameters read from a file are not filled: pretrained vectors, a biLM that is trained with
    the task. The vector of padding stays zero.

    Raises:
        ConfigError: an expression matches no name, or an initializer cannot fill a parameter;
            with all such problems.
    """
    if not rules:
        return
    parts = (part for _, part in parts_of(model))
    from_file = {id(parameter) for part in parts for parameter in part.parameters_from_file()}
    problems: list[Problem] = []
    for lazy, names in _assigned(model, rules, problems):
        initializer = lazy.build()
        if isinstance(initializer, Prevent):
            continue
        skipped = [name for name in names if id(model.get_parameter(name)) in from_file]
        if names and skipped == names:
            problems.append(
                Problem(lazy.path, f"every match is read from a file: {_first(skipped)}")
            )
        for name in names:
            if name not in skipped:
                try:
                    _fill(model, name, initializer)
                except ValueError as error:
                    problems.append(Problem(lazy.path, f"cannot fill {name!r}: {error}"))
                    break
    refuse(problems, source=rules[0][1].source)


def penalties(model: nn.Module, rules: Regularizers | None) -> Penalties:
    """Return the parameters of a model that have a regularizer.

    Raises:
        ConfigError: an expression matches no name.
    """
    if not rules:
        return []
    problems: list[Problem] = []
    matches = [
        (model.get_parameter(name), regularizer)
        for lazy, names in _assigned(model, rules, problems)
        for regularizer in [lazy.build()]
        for name in names
    ]
    refuse(problems, source=rules[0][1].source)
    return matches


def total_penalty(penalties: Penalties) -> Iterator[Tensor]:
    """Yield the penalty of each trainable parameter."""
    for parameter, regularizer in penalties:
        if parameter.requires_grad:
            yield regularizer.penalty(parameter)


def _assigned(
    model: nn.Module, rules: Sequence[tuple[str, Lazy[ComponentT]]], problems: list[Problem]
) -> list[tuple[Lazy[ComponentT], list[str]]]:
    """Return the parameters of each rule: a name belongs to the first rule that matches it.

    A rule without a match is added to `problems`.
    """
    names = [name for name, _ in model.named_parameters()]
    assigned: list[tuple[Lazy[ComponentT], list[str]]] = []
    taken: set[str] = set()
    for pattern, lazy in rules:
        matches = [name for name in names if re.search(pattern, name)]
        if not matches:
            path = lazy.path.removesuffix("[1]") + "[0]"
            problems.append(Problem(path, no_match(pattern, names)))
        assigned.append((lazy, [name for name in matches if name not in taken]))
        taken.update(matches)
    return assigned


@torch.no_grad()
def _fill(model: nn.Module, name: str, initializer: Any) -> None:
    path, _, own_name = name.rpartition(".")
    module, parameter = model.get_submodule(path), model.get_parameter(name)
    initializer.fill(parameter, gates_of(module, own_name))
    padding = module.padding_idx if isinstance(module, nn.Embedding) else None
    if padding is not None and own_name == "weight":
        parameter[padding] = 0


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
