"""Each optimizer is torch's, with the numbers of the config."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework.config.parse import parse
from elmo_framework.errors import BuildError
from elmo_framework.kernels.backend import accelerator_code
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


@pytest.mark.parametrize(("type_", "decay"), [("adam", 0.0), ("adamw", 0.01)])
def test_adam_follows_its_equations(type_: str, decay: float) -> None:
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = parse(Optimizer, {"type": type_, "lr": 0.1}, source="test").build()
    optimizer = optimizer.create([parameter])
    weight, mean, square = 1.0, 0.0, 0.0
    for step, gradient in enumerate((2.0, -0.5), 1):
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        root = (square / (1 - 0.999**step)) ** 0.5 + 1e-8
        weight -= 0.1 * decay * weight + 0.1 * mean / (1 - 0.9**step) / root
    assert parameter.item() == pytest.approx(weight)


@pytest.mark.parametrize("type_", ["adagrad", "adam", "adamw"])
@pytest.mark.parametrize(("device", "fused"), [("cpu", True), ("meta", None)])
def test_optimizers_are_fused_on_the_cpu(type_: str, device: str, fused: bool | None) -> None:
    parameter = nn.Parameter(torch.ones(2, device=device))
    created = parse(Optimizer, type_, source="test").build().create([parameter])
    assert created.param_groups[0]["fused"] is fused


@pytest.mark.parametrize("type_", ["adagrad", "adam", "adamw"])
def test_a_parameter_in_the_memory_of_another_changes_only_its_own_numbers(type_: str) -> None:
    memory = torch.arange(24.0).view(4, 6)
    before, parameter = memory.clone(), nn.Parameter(memory[:, :3])
    optimizer = parse(Optimizer, type_, source="test").build().create([parameter])
    parameter.grad = torch.ones(4, 3)
    optimizer.step()
    assert torch.equal(memory[:, 3:], before[:, 3:])
    assert (memory[:, :3] < before[:, :3] + 1e-9).all()
    assert (memory[:, :3] != before[:, :3]).all()


def test_a_checkpoint_of_an_optimizer_that_was_not_fused_continues_with_its_bits() -> None:
    """Those of earlier versions; fused arithmetic rounds otherwise."""
    gradients, parameters = torch.randn(5, 40, generator=torch.Generator().manual_seed(0)), []
    for is_resumed in (False, True):
        parameter = nn.Parameter(torch.ones(40))
        optimizer: torch.optim.Optimizer = torch.optim.Adam([parameter])
        for number, gradient in enumerate(gradients):
            if is_resumed and number == 2:
                state = optimizer.state_dict()
                optimizer = parse(Optimizer, "adam", source="test").build().create([parameter])
                optimizer.load_state_dict(state)
            parameter.grad = gradient.clone()
            optimizer.step()
        parameters.append(parameter)
    assert torch.equal(*parameters)


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adagrad_of_accelerators_equals_pytorch_s(weight_decay: float) -> None:
    config = {"type": "adagrad", "lr": 0.3, "weight_decay": weight_decay}
    results, states = [], []
    for code in (nullcontext, accelerator_code):
        torch.manual_seed(0)
        groups = [[nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(2))] for _ in range(2)]
        optimizer = parse(Optimizer, config, source="test").build()
        created = optimizer.create([{"params": group} for group in groups])
        created.param_groups[1]["lr"] = 0.1
        parameters = [each for group in groups for each in group]
        for step in range(3):
            for parameter in parameters[step == 1 :]:  # the first one has no gradient once
                parameter.grad = torch.randn_like(parameter)
            with code():
                created.step()
            created.zero_grad()
        results.append(parameters)
        states.append(created.state_dict()["state"])
    for state in states:
        assert [float(each["step"]) for each in state.values()] == [2, 3, 3, 3]
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(states[1], states[0])


def test_adagrad_counts_updates_on_the_device_of_a_parameter() -> None:
    """A recorded update changes nothing on the CPU, also after a resumption."""
    config = parse(Optimizer, "adagrad", source="test")
    on_cpu, on_device = (
        config.build().create([nn.Parameter(torch.ones(2, device=each))])
        for each in ("cpu", "meta")
    )
    on_device.load_state_dict(on_cpu.state_dict())
    (state,) = on_device.state.values()
    assert {each.device.type for each in state.values()} == {"meta"}


def test_nesterov_needs_momentum() -> None:
    with pytest.raises(BuildError, match="nesterov needs a momentum above 0"):
        parse(Optimizer, {"type": "sgd", "lr": 0.1, "nesterov": True}, source="test").build()
