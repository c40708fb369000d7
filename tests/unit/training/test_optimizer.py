"""Each optimizer is torch's, with the numbers of the config."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework.config.parse import parse
from elmo_framework.errors import BuildError
from elmo_framework.training.optimizer import Optimizer


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"type": "adagrad", "lr": 0.3}, torch.optim.Adagrad),
        ({"type": "adam", "betas": [0.5, 0.9]}, torch.optim.Adam),
        ({"type": "adamw", "weight_decay": 0.2}, torch.optim.AdamW),
        ({"type": "adadelta", "rho": 0.8}, torch.optim.Adadelta),
        ({"type": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True}, torch.optim.SGD),
        ({"type": "rmsprop", "alpha": 0.7}, torch.optim.RMSprop),
    ],
)
def test_optimizers_are_those_of_pytorch(config: dict[str, Any], expected: type) -> None:
    parameter = nn.Parameter(torch.ones(2))
    created = parse(Optimizer, config, source="test").build().create([parameter])
    assert isinstance(created, expected)
    group = created.param_groups[0]
    for key in config.keys() - {"type"}:
        assert group[key] == (tuple(config[key]) if key == "betas" else config[key])


def test_adagrad_follows_its_equation() -> None:
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = parse(Optimizer, "adagrad", source="test").build().create([parameter])
    parameter.grad = torch.tensor([2.0])
    optimizer.step()
    assert parameter.item() == pytest.approx(1 - 0.2 * 2 / (1 + 2**2) ** 0.5)


@pytest.mark.parametrize(
    ("version", "device", "fused"),
    [("2.9.1", "cpu", True), ("2.9.1", "meta", None), ("2.13.0+cu130", "meta", True)],
)
def test_adagrad_is_fused_where_supported(
    monkeypatch: pytest.MonkeyPatch, version: str, device: str, fused: bool | None
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    parameter = nn.Parameter(torch.ones(2, device=device))
    created = parse(Optimizer, "adagrad", source="test").build().create([parameter])
    assert created.param_groups[0]["fused"] is fused


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(BuildError, match="nesterov needs a momentum above 0"):
        parse(Optimizer, {"type": "sgd", "lr": 0.1, "nesterov": True}, source="test").build()
