"""Exponential moving average of a model's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class AveragedWeights:
    """Keeps `average <- average + (1 - decay) * (parameter - average)`.

    Args:
        model: whose trained parameters are averaged.
        decay: weight of the old average at each step; None disables averaging.
    """

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self._decay = decay
        trained = dict(model.named_parameters()) if decay is not None else {}
        self._parameters = {
            name: parameter for name, parameter in trained.items() if parameter.requires_grad
        }
        self._averages = self._copies()

    def update(self) -> None:
        if self._decay is not None:
            with torch.no_grad():
                for name, average in self._averages.items():
                    average.lerp_(self._parameters[name], 1 - self._decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the parameters by their averages inside the block."""
        current = self._copies()
        self._load(self._averages)
        try:
            yield
        finally:
            self._load(current)

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self._averages)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, average in self._averages.items():
            average.copy_(state[name])

    def _copies(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self._parameters.items()}

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(weights[name])
