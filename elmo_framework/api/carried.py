"""The option `state` of the interfaces for programs."""

from __future__ import annotations

from typing import Literal

from elmo_framework.errors import allowed
from elmo_framework.layers.carried_state import CarriedState

_STATES = ("reset", "carry")


def carried_for(state: Literal["reset", "carry"]) -> CarriedState | None:
    """Return what keeps the states of rows; None for `reset`.

    Raises:
        ValueError: `state` is something else.
    """
    if state not in _STATES:
        raise ValueError(f"state is {state!r}; {allowed(state, _STATES)}")
    return CarriedState() if state == "carry" else None


def require_carried(carried: CarriedState | None) -> None:
    """Refuse to warm up where nothing is carried.

    Raises:
        ValueError: `state` is `reset`.
    """
    if carried is None:
        raise ValueError("warm_up needs state='carry'; with state='reset' nothing is carried")
