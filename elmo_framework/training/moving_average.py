"""An exponential moving average of a model's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class AveragedWeights:
    """Keeps `average <- average + (1 - decay) * (parameter - average)`.

    Args:
        model: whose trained parameters are averaged.
        decay: what is kept at each step; None keeps no average, and every method does nothing.
    """

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self._decay = decay
        trained = dict(model.named_parameters()) if decay is not None else {}
        self._parameters = {name: held for name, held in trained.items() if held.requires_grad}
        self._averages = {name: held.detach().clone() for name, held in self._parameters.items()}

    def update(self) -> None:
        """Take the parameters of now into the average."""
        if self._decay is not None:
            with torch.no_grad():
                for name, average in self._averages.items():
                    average.lerp_(self._parameters[name], 1 - self._decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the averages in the place of the parameters for a while."""
        kept = {name: held.detach().clone() for name, held in self._parameters.items()}
        self._copy(self._averages)
        try:
            yield
        finally:
            self._copy(kept)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the averages by the name of the parameter."""
        return dict(self._averages)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `state_dict` returned."""
        for name, average in self._averages.items():
            average.copy_(state[name])

    def _copy(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(weights[name])
