"""Base class for modules with hooks for initializers, optimizers and frozen models."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from elmo_framework.kernels.product import Precision


class Gates(NamedTuple):
    """The gates concatenated along the first dimension of a parameter.

    Attributes:
        num_gates: number of gates; all have the same number of rows.
        forget: index of the forget gate, from 0; None for a network without one.
        is_bias: whether the parameter is a bias, with a number, or a row of them, for each gate.
        forget_bias: constant that the network adds to the forget gate, besides this parameter.
    """

    num_gates: int
    forget: int | None
    is_bias: bool = False
    forget_bias: float = 0.0


class TensorPart(nn.Module):
    """A module with hooks that concern tensors alone; each is a no-op by default.

    The hooks that know text are in `model.part.Part`, which this package may not import.

    Attributes:
        has_sparse_gradients: whether the gradient of a large table may be a sparse tensor; set by
            the trainer, and read by modules with such a table.
    """

    has_sparse_gradients = False

    def parameter_gates(self, name: str) -> Gates | None:
        """Return the gates of a parameter, by its name in this module; None if it has none."""
        return None

    def freeze(self, precision: Precision) -> None:
        """Prepare for inference: use the weights as they are now; copies are not prepared.

        Raises:
            ValueError: the device has no products in this precision.
        """


def freeze_parts(module: nn.Module, precision: Precision) -> None:
    """Prepare a module and all modules in it for inference: their weights must not change later.

    Raises:
        ValueError: the device has no products in this precision.
    """
    for part in module.modules():
        if isinstance(part, TensorPart):
            part.freeze(precision)


_LSTM, _GRU = Gates(4, forget=1), Gates(3, forget=None)
"""PyTorch's order of gates: i, f, g, o and r, z, n."""


def gates_of(module: nn.Module, name: str) -> Gates | None:
    """Return the gates of a parameter of a module itself, not of a submodule; None if none."""
    if isinstance(module, TensorPart):
        return module.parameter_gates(name)
    is_bias = name.startswith("bias")
    if isinstance(module, nn.LSTM):
        return None if name.startswith("weight_hr") else _LSTM._replace(is_bias=is_bias)
    return _GRU._replace(is_bias=is_bias) if isinstance(module, nn.GRU) else None
