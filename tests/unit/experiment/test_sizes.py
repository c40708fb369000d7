"""Sizes that no machine can compute are refused with their path, before anything is built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from elmo_framework.config import plain
from elmo_framework.config.load import Config
from elmo_framework.config.registry import families, members
from elmo_framework.config.signature import (
    OptionsType,
    Parameter,
    PlainType,
    configurable,
    leaf,
    walk,
)
from elmo_framework.errors import dotted
from elmo_framework.experiment import model_report
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.model_report import size_budget

HUGE = 2**62
GOLDEN = Path(__file__).parents[2] / "golden"
NO_SIZES = {
    *("index", "layers", "sentence_column", "tag_column", "word_column"),
    *("input_dim", "input_size"),
}
"""Places, and sizes that are inferred: a stated one is only compared."""
INFERRED = {
    *(("bag_of_embeddings", "embedding_dim"), ("cnn", "embedding_dim")),
    *(("bilinear", "matrix_1_dim"), ("bilinear", "matrix_2_dim")),
    *(("linear", "tensor_1_dim"), ("linear", "tensor_2_dim")),
}


def integers(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any] | list[Any], Any]]:
    """Yield the path of each whole number in a config, with what holds it and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from integers(item, dotted(path, key))
        elif isinstance(item, int) and not isinstance(item, bool):
            yield dotted(path, key), value, key


EXPERIMENTS = [
    path for path in sorted(GOLDEN.glob("*.json")) if "model" in json.loads(path.read_text())
]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_each_huge_number_of_a_config_is_refused(path: Path) -> None:
    raw = json.loads(path.read_text())
    places = list(integers(raw))
    for _, holder, key in places:
        holder[key] = HUGE
    found = {problem.path for problem in check_config(Config(raw, path.name, "")).problems}
    expected = {place for place, _, _ in places}
    assert expected
    assert expected <= found


def registered() -> list[tuple[str, Parameter]]:
    """The registered names with each of their parameters, options of a dataclass included.

    Those of other tests are left out.
    """
    asked = [
        (name, member)
        for family in families().values()
        for name, member in named(family)
        if member.__module__.startswith("elmo_framework.")
    ]
    rows = [(name, parameter) for name, member in asked for parameter in configurable(member)]
    for name, parameter in rows:
        inner = leaf(parameter.shape)
        if isinstance(inner, OptionsType):
            rows += [(name, option) for option in configurable(inner.factory)]
    return rows


def named(family: type[Any]) -> list[tuple[str, type[Any]]]:
    return [*members(family).items()] or [(family.__name__, family)]


def takes_integer(hint: Any) -> bool:
    return any(part is int for part in walk(hint))


def accepts(hint: Any, value: object) -> bool:
    try:
        plain.read(hint, value)
    except ValidationError:
        return False
    return True


def test_each_size_of_a_registered_component_has_bounds() -> None:
    unbounded = {
        (name, parameter.name)
        for name, parameter in registered()
        if isinstance(inner := leaf(parameter.shape), PlainType)
        and takes_integer(inner.hint)
        and any(accepts(inner.hint, value) for value in (HUGE, [HUGE], [[1, HUGE]], {"a": HUGE}))
    }
    assert {place for place in unbounded if place[1] not in NO_SIZES} <= INFERRED


def test_too_many_parameters_are_refused_with_their_path() -> None:
    raw = json.loads((GOLDEN / "pretrain-tiny.json").read_text())
    layers = raw["model"]["context_layers"]
    layers.update(num_layers=100, cell_size=65_536, projection_dim=65_536)
    problems = check_config(Config(raw, "large.json", "")).problems
    assert [str(problem) for problem in problems if problem.path.startswith("model.context")] == [
        "model.context_layers: ElmoLstmContextLayers: the model has more than "
        "1,099,511,627,776 parameters"
    ]


def test_a_model_of_too_many_weight_tensors_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_report, "_MOST_TENSORS", 10)
    with torch.device("meta"):
        with size_budget():
            layers = [nn.Linear(1, 1) for _ in range(5)]
        with pytest.raises(ValueError, match="more than 10 weight tensors"), size_budget():
            layers += [nn.Linear(1, 1) for _ in range(6)]
        layers.append(nn.Linear(1, 1))
