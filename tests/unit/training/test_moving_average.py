"""The average follows its equation, and takes the place of the weights for a while only."""

from __future__ import annotations

from contextlib import suppress

import pytest
import torch
from torch import nn

from elmo_framework.training.moving_average import AveragedWeights


def layer(weight: float) -> nn.Linear:
    module = nn.Linear(1, 1)
    nn.init.constant_(module.weight, weight)
    module.bias.requires_grad_(False)
    return module


def test_average_follows_its_equation() -> None:
    module = layer(1.0)
    average = AveragedWeights(module, decay=0.9)
    expected = 1.0
    for weight in (2.0, -3.0):
        nn.init.constant_(module.weight, weight)
        average.update()
        expected = 0.9 * expected + 0.1 * weight
        assert average.state_dict()["weight"].item() == pytest.approx(expected)
    assert module.weight.item() == -3.0


def test_only_trained_parameters_are_averaged() -> None:
    assert set(AveragedWeights(layer(1.0), decay=0.9).state_dict()) == {"weight"}


def test_average_replaces_weights_inside_the_block() -> None:
    module = layer(1.0)
    average = AveragedWeights(module, decay=0.5)
    nn.init.constant_(module.weight, 3.0)
    average.update()
    with suppress(KeyError), average.in_place():
        in_block = module.weight.item()
        raise KeyError
    assert (in_block, module.weight.item()) == (2.0, 3.0)
    assert average.state_dict()["weight"].item() == 2.0


def test_loaded_average_is_updated_further() -> None:
    first, second = (AveragedWeights(layer(weight), decay=0.5) for weight in (1.0, 5.0))
    saved = {name: value.clone() for name, value in first.state_dict().items()}
    second.load_state_dict(saved)
    second.update()
    assert second.state_dict()["weight"].item() == 3.0
    assert torch.equal(first.state_dict()["weight"], saved["weight"])


def test_without_decay_there_is_no_average() -> None:
    module = layer(1.0)
    average = AveragedWeights(module, decay=None)
    average.update()
    assert average.state_dict() == {}
    with average.in_place():
        assert module.weight.item() == 1.0
