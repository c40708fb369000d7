"""The gates of recurrent networks: which rows of a parameter belong to which gate."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from torch import nn


class Gates(NamedTuple):
    """The gates that a parameter holds one after the other along its first dimension.

    Attributes:
        num_gates: how many there are; each has the same number of rows.
        forget: which of them is the forget gate, from 0; None for a network without one.
        is_bias: whether the parameter is a bias, with a number, or a row of them, for each gate.
        forget_bias: what the network adds to the forget gate besides this parameter.
    """

    num_gates: int
    forget: int | None
    is_bias: bool = False
    forget_bias: float = 0.0


@runtime_checkable
class Gated(Protocol):
    """A recurrent network."""

    def gates(self, name: str) -> Gates | None:
        """Return the gates of a parameter, by its name in this module; None if it has none."""


_LSTM, _GRU = Gates(4, forget=1), Gates(3, forget=None)
"""PyTorch's orders: i, f, g, o and r, z, n."""


def gates_of(module: nn.Module, name: str) -> Gates | None:
    """Return the gates of a parameter of a module; None if it has none.

    Args:
        module: that holds the parameter itself.
        name: of the parameter in the module.
    """
    if isinstance(module, Gated):
        return module.gates(name)
    is_bias = name.startswith("bias")
    if isinstance(module, nn.LSTM):
        return None if name.startswith("weight_hr") else _LSTM._replace(is_bias=is_bias)
    return _GRU._replace(is_bias=is_bias) if isinstance(module, nn.GRU) else None
