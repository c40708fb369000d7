"""Gradual unfreezing and discriminative rates (Howard and Ruder 2018)."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework.config.parse import parse
from elmo_framework.model.part import Part, parameters_by_layer
from elmo_framework.training.optimizer import Optimizer
from elmo_framework.training.unfreezing import (
    Unfreezing,
    freeze_lower_groups,
    grouped_optimizer,
    unfreezing_problem,
)
from tests.unit.training.toy import ToyModel


class Encoder(Part):
    """Layers of one number each."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ParameterList(torch.ones(1) for _ in range(num_layers))

    def layer_parameters(self) -> list[list[torch.Tensor]]:
        return [[layer] for layer in self.layers]


@pytest.fixture
def model() -> ToyModel:
    model = ToyModel()
    model.high, model.low = Encoder(3), Encoder(1)
    return model


def optimizer_of(
    model: ToyModel, unfreezing: Unfreezing | None, **keys: Any
) -> torch.optim.Optimizer:
    raw = {"type": "sgd", "lr": 1.0, **keys}
    optimizer = parse(Optimizer, raw, source="test").build()
    return grouped_optimizer(optimizer, model, list(model.parameters()), unfreezing)


def step(model: ToyModel, optimizer: torch.optim.Optimizer, unfreezing, epoch: int) -> None:
    sum(parameter.sum() for parameter in model.parameters()).backward()
    freeze_lower_groups(optimizer, unfreezing, epoch)
    optimizer.step()
    optimizer.zero_grad()


def test_each_layer_has_a_rate_below_the_one_above(model: ToyModel) -> None:
    unfreezing = Unfreezing(epochs_per_layer=0, layer_decay=0.5)
    optimizer = optimizer_of(model, unfreezing)
    head = model.network[0].weight.detach().clone()
    step(model, optimizer, unfreezing, epoch=0)
    torch.testing.assert_close(model.network[0].weight, head - 1)
    changes = [1 - layer.item() for layer in model.high.layers]
    assert changes == [0.125, 0.25, 0.5]
    assert model.low.layers[0].item() == 0.5
    assert [group["lr"] for group in optimizer.param_groups] == [1, 0.5, 0.25, 0.125]


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "adagrad"])
def test_layers_are_unfrozen_from_the_top(model: ToyModel, name: str) -> None:
    unfreezing = Unfreezing(epochs_per_layer=2, layer_decay=1.0)
    optimizer = optimizer_of(model, unfreezing, type=name)
    frozen_until = {0: 6, 1: 4, 2: 2}
    for epoch in range(7):
        before = [layer.item() for layer in model.high.layers]
        step(model, optimizer, unfreezing, epoch)
        changed = [now.item() != was for now, was in zip(model.high.layers, before, strict=True)]
        assert changed == [epoch >= frozen_until[layer] for layer in range(3)], epoch


def test_no_unfreezing_is_one_group(model: ToyModel) -> None:
    optimizer = optimizer_of(model, None)
    assert len(optimizer.param_groups) == 1
    step(model, optimizer, None, epoch=0)
    assert all(layer.item() == 0 for layer in model.high.layers)


@pytest.mark.parametrize(
    ("trained", "problem"),
    [
        (r"high\.layers\.1", None),
        ("network", "trainer.no_grad freezes all layers"),
    ],
)
def test_unfreezing_needs_a_trained_layer(
    model: ToyModel, trained: str, problem: str | None
) -> None:
    parameters = [each for name, each in model.named_parameters() if re.search(trained, name)]
    message = unfreezing_problem(model, parameters)
    assert message is None if problem is None else problem in str(message)


def test_unfreezing_needs_an_encoder() -> None:
    model = ToyModel()
    assert "no encoder is trained" in str(unfreezing_problem(model, list(model.parameters())))


def test_parameters_are_found_by_layer() -> None:
    module = nn.ModuleDict(
        {
            "embeddings": nn.Linear(1, 1, bias=False),
            "layers": nn.ModuleList(nn.Sequential(nn.Linear(1, 1)) for _ in range(2)),
            "norm": nn.LayerNorm(1),
        }
    )
    layers = parameters_by_layer(module)
    assert [len(layer) for layer in layers] == [1, 2, 4]
    assert layers[0][0] is module["embeddings"].weight
    assert any(parameter is module["norm"].weight for parameter in layers[2])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("layernorm_embedding", 0),  # BART
        ("encoder.relative_attention_bias", 0),  # MPNet
        ("encoder.rel_embeddings", 0),  # DeBERTa
        ("encoder.LayerNorm", 0),  # DeBERTa
        ("layer_norm", 2),  # mBART
        ("decoder.final_layer_norm", 2),  # OPT
        ("final_norm", 2),  # ModernBERT
        ("project_out", 2),  # OPT
    ],
)
def test_names_tell_the_layer_of_parameters_wherever_they_are_registered(
    name: str, expected: int
) -> None:
    others = ["embeddings", "layers.0", "layers.1"]
    orders = [[*others, name]]
    if name != "layer_norm":  # a name that does not tell
        orders.append([name, *others])
    for order in orders:
        module = nn.Module()
        weights = {path: _weight_at(module, path) for path in order}
        found = [
            any(each is weights[name] for each in layer) for layer in parameters_by_layer(module)
        ]
        assert found.index(True) == expected
        assert sum(found) == 1


def _weight_at(module: nn.Module, path: str) -> nn.Parameter:
    """Register a weight below a module, with the modules between."""
    for name in path.split("."):
        if name not in dict(module.named_children()):
            module.add_module(name, nn.Module())
        module = module.get_submodule(name)
    weight = nn.Parameter(torch.ones(1))
    module.register_parameter("weight", weight)
    return weight
