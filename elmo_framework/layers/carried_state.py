"""State carried from the rows of a batch to the rows of the next, as in bilm-tf and AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.bilm.context_layers import Direction, State
from elmo_framework.bilm.layer_output import LayerState


@final
class CarriedState:
    """States by row, in memory: a larger batch adds rows of zeros, a smaller one uses the first.

    Rows that a batch did not use keep what they had.
    """

    def __init__(self) -> None:
        self._states: dict[Direction, State] = {}

    def rows(self, num_rows: int, device: torch.device) -> LayerState:
        """Return the state of the first rows; nothing before the first batch."""
        return {
            direction: tuple(_resized(tensor, num_rows).to(device) for tensor in state)
            for direction, state in self._states.items()
        }

    def keep(self, state: LayerState) -> None:
        """Take over the state after a batch, without its history."""
        self._states = {
            direction: tuple(
                torch.cat([new, old[len(new) :].to(new.device)]).detach()
                for old, new in zip(self._states.get(direction, states), states, strict=True)
            )
            for direction, states in state.items()
        }

    def tensors(self) -> dict[str, Tensor]:
        return named_states(self._states)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` returned; start from zeros when it is empty."""
        self._states = states_by_name(tensors)


def require_state(state: str, *, reads_both_sides: bool) -> None:
    """Refuse to carry the state of a model that has none.

    Raises:
        ValueError: `state` is `carry`, and each layer of the model reads both sides of a word.
    """
    if state == "carry" and reads_both_sides:
        raise ValueError(
            "state is 'carry', and a model that reads both sides of a word has no state to carry; "
            "allowed: 'reset'"
        )


def named_states(states: LayerState) -> dict[str, Tensor]:
    """Return each tensor of two states by its direction and number: `forward.0`."""
    return {
        f"{direction}.{number}": tensor
        for direction, state in states.items()
        for number, tensor in enumerate(state)
    }


def states_by_name(tensors: Mapping[str, Tensor]) -> dict[Direction, State]:
    """Return the states whose tensors `named_states` returned."""
    states: dict[Direction, State] = {}
    for direction in get_args(Direction):
        size = sum(name.startswith(f"{direction}.") for name in tensors)
        if size:
            states[direction] = tuple(tensors[f"{direction}.{number}"] for number in range(size))
    return states


def _resized(rows: Float[Tensor, "rows ..."], num_rows: int) -> Float[Tensor, "first ..."]:
    missing = max(0, num_rows - len(rows))
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])[:num_rows]
