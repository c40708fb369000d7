"""Groups of parameters with a learning rate or a weight decay of their own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.parameter_groups import ParameterGroup, group_problems, with_settings
from tests.unit.training.toy import ToyModel


def groups_of(model: ToyModel, **settings: Any) -> list[dict[str, Any]]:
    group = ParameterGroup(parameters=["bias"], **settings)
    trained = [each for name, each in model.named_parameters() if name != "network.0.bias"]
    return with_settings(model, trained, [group])


def test_the_first_group_has_the_rest() -> None:
    model = ToyModel()
    rest, own = groups_of(model, lr=0.5, weight_decay=0.1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert [names[id(each)] for each in own["params"]] == [
        name for name in names.values() if "bias" in name and name != "network.0.bias"
    ]
    assert len(rest["params"]) + len(own["params"]) == len(names) - 1
    assert rest.keys() == {"params"}
    assert own.keys() == {"params", "lr", "weight_decay"}


def test_a_name_is_in_one_group_and_each_expression_matches() -> None:
    names = [name for name, _ in ToyModel().named_parameters()]
    first = ParameterGroup(parameters=["bias", "xyz"], lr=1.0)
    second = ParameterGroup(parameters=["0.bias"], lr=2.0)
    assert [each.path for each in group_problems([first], names)] == [
        "trainer.parameter_groups[0].parameters[1]"
    ]
    *_, problem = group_problems([second, first], names)
    assert problem.path == "trainer.parameter_groups"
    assert problem.message == "'network.0.bias' is in the groups 0 and 1; a parameter is in one"
    with pytest.raises(ValueError, match="a group needs an lr or a weight_decay"):
        ParameterGroup(parameters=["bias"])


@pytest.mark.parametrize("kind", ["sgd", "adagrad"])
def test_each_group_has_its_own_update(kind: str) -> None:
    model = ToyModel()
    raw = {"type": kind, "lr": 0.1}
    optimizer = parse(Optimizer, raw, source="test").build().create(groups_of(model, lr=0.4))
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    for each in model.parameters():
        each.grad = torch.ones_like(each)
    optimizer.step()
    accumulated = 2**0.5 if kind == "adagrad" else 1  # the root of 1 + 1
    for name, each in model.named_parameters():
        rate = 0.0 if name == "network.0.bias" else 0.4 if "bias" in name else 0.1
        torch.testing.assert_close(each, before[name] - rate / accumulated)
