"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

Activation: TypeAlias = Literal["relu", "tanh", "sigmoid", "linear"]

_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "linear": lambda inputs: inputs,
}


def activate(inputs: Tensor, activation: Activation) -> Tensor:
    """Apply an activation function to each number; `linear` changes nothing."""
    return _FUNCTIONS[activation](inputs)
