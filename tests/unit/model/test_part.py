from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.model.part import Part, Reference, parts_of
from elmo_framework.nn.part import gates_of

REFERENCE = Reference(Path("weights"), "digest")


class Counter(Part):
    """A part with a value in every hook that a model collects."""

    reference = REFERENCE

    def __init__(self) -> None:
        super().__init__()
        self.state = {"number": torch.zeros(1)}

    def penalty(self) -> Tensor:
        return torch.tensor(2.0)

    def carried_state(self) -> dict[str, Tensor]:
        return self.state

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        self.state = dict(state)

    def monitored_values(self) -> Mapping[str, float]:
        return {"value": 3.0}


class Parts(Model[Any]):
    """Has any parts."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, batch: Any) -> ModelOutput:
        return ModelOutput(loss=None)

    def sums(self, output: ModelOutput, batch: Any) -> dict[str, float]:
        return {}

    def scores(self, sums: Any) -> dict[str, float]:
        return {}


def test_a_model_collects_the_hooks_of_its_parts() -> None:
    model = Parts(Counter(), nn.Sequential(Counter()))

    assert model.penalty() == 4.0
    assert list(model.carried_state()) == ["parts.0/number", "parts.1.0/number"]
    assert model.monitored_values() == {"parts.0.value": 3.0, "parts.1.0.value": 3.0}
    assert model.references() == {"parts.0": REFERENCE, "parts.1.0": REFERENCE}


def test_each_part_gets_its_own_state_back() -> None:
    first, second = Counter(), Counter()
    model = Parts(first, second)

    model.load_carried_state({"parts.1/number": torch.ones(1)})

    assert first.state == {}
    assert second.state["number"] == 1


@pytest.mark.parametrize("part", [nn.Linear(2, 2), Part()], ids=["plain", "default"])
def test_a_plain_module_and_a_default_part_change_nothing(part: nn.Module) -> None:
    model = Parts(part)

    assert model.penalty() is None
    assert model.indexers == []
    assert model.carried_state() == model.monitored_values() == model.references() == {}
    assert gates_of(part, "weight") is None
    model.load_carried_state({"parts.0/number": torch.ones(1)})


def test_default_hooks_for_data_read_nothing() -> None:
    def sentences() -> list[list[str]]:
        raise AssertionError("the data was read")

    part = Part()
    part.precompute(sentences, torch.device("cpu"))
    part.freeze("float32")

    assert list(part.parameters_from_file()) == []
    assert part.has_vector("word") is None


def test_parts_are_modules_with_hooks_without_the_model() -> None:
    model = Parts(nn.Linear(2, 2), Part())

    assert [name for name, _ in parts_of(model)] == ["parts.1"]
