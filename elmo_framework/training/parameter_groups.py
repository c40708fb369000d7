"""Groups of parameters with a learning rate or a weight decay of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import MinLen
from torch import nn

from elmo_framework.config.patterns import Regex, no_match
from elmo_framework.errors import Problem, dotted
from elmo_framework.training.optimizer import Penalty, Rate

_KEY = "trainer.parameter_groups"


@dataclass(frozen=True, kw_only=True)
class ParameterGroup:
    """Parameters that are trained with settings of their own.

    Attributes:
        parameters: regular expressions; the group has the parameters with a matching name.
        lr: their learning rate, which the schedule multiplies too; null for that of the optimizer.
        weight_decay: their weight decay; null for that of the optimizer.
    """

    parameters: Annotated[list[Regex], MinLen(1)]
    lr: Rate | None = None
    weight_decay: Penalty | None = None

    def __post_init__(self) -> None:
        if not self.settings:
            raise ValueError("a group needs an lr or a weight_decay")

    @property
    def settings(self) -> dict[str, float]:
        """What differs from the optimizer."""
        settings = {"lr": self.lr, "weight_decay": self.weight_decay}
        return {key: value for key, value in settings.items() if value is not None}

    def matches(self, name: str) -> bool:
        return any(re.search(pattern, name) for pattern in self.parameters)


def group_problems(groups: Sequence[ParameterGroup], names: Sequence[str]) -> Iterator[Problem]:
    """Yield the expressions that match no name, and the names that are in several groups."""
    for index, group in enumerate(groups):
        for place, pattern in enumerate(group.parameters):
            if not any(re.search(pattern, name) for name in names):
                path = dotted(dotted(dotted(_KEY, index), "parameters"), place)
                yield Problem(path, no_match(pattern, names))
    for name in names:
        places = [str(index) for index, group in enumerate(groups) if group.matches(name)]
        if len(places) > 1:
            message = f"{name!r} is in the groups {' and '.join(places)}; a parameter is in one"
            yield Problem(_KEY, message)
            return


def with_settings(
    model: nn.Module, trained: Sequence[nn.Parameter], groups: Sequence[ParameterGroup]
) -> list[dict[str, Any]]:
    """Return groups of parameters as `torch.optim` takes them.

    The first one has the parameters that are in no group, so its rate is that of the optimizer.

    Args:
        model: has the names of the parameters.
        trained: its trained parameters.
        groups: disjoint.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    rest = list[nn.Parameter]()
    members: list[list[nn.Parameter]] = [[] for _ in groups]
    for parameter in trained:
        name = names.get(id(parameter))
        matching = [
            own
            for own, group in zip(members, groups, strict=True)
            if name is not None and group.matches(name)
        ]
        (matching[0] if matching else rest).append(parameter)
    own_settings = zip(members, groups, strict=True)
    return [{"params": rest}, *({"params": own, **group.settings} for own, group in own_settings)]
