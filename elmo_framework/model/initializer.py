"""The family of initializers, which fill parameters before training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from typing import Annotated, Literal, TypeAlias, final

import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn

from elmo_framework.config.patterns import Regex
from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Dim, Lazy
from elmo_framework.nn.part import Gates

Nonlinearity: TypeAlias = Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
FanMode: TypeAlias = Literal["fan_in", "fan_out"]
Gain: TypeAlias = Annotated[float, Gt(0)]


class Initializer(Registrable, ABC):
    """Fills a parameter.

    Args:
        gain: factor of all numbers.
        nonlinearity: what follows; it decides the gain.
        a: slope below zero, of `leaky_relu`.
        mode: whether the sums of the forward pass keep their size (`fan_in`) or those of the
            backward pass (`fan_out`).
    """

    default_member = "normal"

    @abstractmethod
    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter.

        Args:
            parameter: of any shape; on the `meta` device only its shape is checked.
            gates: of a parameter of a recurrent network; None for others.

        Raises:
            ValueError: it cannot fill a parameter of this shape or kind.
        """


Initializers: TypeAlias = list[tuple[Regex, Lazy[Initializer]]]
"""Rules for parameters: the first expression that matches a part of the name applies."""


@final
class InitializerFunction(Initializer):
    """Fills a parameter with a function, which takes the arguments of `fill`."""

    def __init__(self, function: Callable[[Tensor, Gates | None], object]) -> None:
        self._function = function

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        self._function(parameter, gates)


@Initializer.register("normal")
def normal(mean: float = 0.0, std: Annotated[float, Ge(0)] = 0.1) -> Initializer:
    """Draws from a normal distribution.

    Args:
        mean: of the distribution.
        std: its standard deviation.
    """
    return InitializerFunction(lambda parameter, _: nn.init.normal_(parameter, mean, std))


@Initializer.register("truncated_normal")
def truncated_normal(mean: float = 0.0, std: Annotated[float, Gt(0)] = 1.0) -> Initializer:
    """Draws from a normal distribution, again where a number is more than two deviations off.

    That is TensorFlow's `truncated_normal_initializer`.

    Args:
        mean: of the distribution.
        std: its standard deviation before numbers are drawn again.
    """
    ends = mean - 2 * std, mean + 2 * std
    return InitializerFunction(lambda values, _: nn.init.trunc_normal_(values, mean, std, *ends))


@Initializer.register("uniform")
def uniform(a: float = 0.0, b: float = 1.0) -> Initializer:
    """Draws evenly from an interval.

    Args:
        a: its lower end.
        b: its upper end.
    """
    if a > b:
        raise ValueError(f"a is {a} and b is {b}; a is the lower end")
    return InitializerFunction(lambda parameter, _: nn.init.uniform_(parameter, a, b))


@Initializer.register("constant")
def constant(val: float) -> Initializer:
    """Fills with one number.

    Args:
        val: the number.
    """
    return InitializerFunction(lambda parameter, _: nn.init.constant_(parameter, val))


@Initializer.register("zero")
def zero() -> Initializer:
    """Fills with zeros."""
    return InitializerFunction(lambda parameter, _: nn.init.zeros_(parameter))


@Initializer.register("xavier_uniform")
def xavier_uniform(gain: Gain = 1.0) -> Initializer:
    """Draws evenly from +-gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return InitializerFunction(lambda weight, _: nn.init.xavier_uniform_(_matrix(weight), gain))


@Initializer.register("xavier_normal")
def xavier_normal(gain: Gain = 1.0) -> Initializer:
    """Normal, with a deviation of gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return InitializerFunction(lambda weight, _: nn.init.xavier_normal_(_matrix(weight), gain))


@Initializer.register("kaiming_uniform")
def kaiming_uniform(
    a: float = 0.0, mode: FanMode = "fan_in", nonlinearity: Nonlinearity = "leaky_relu"
) -> Initializer:
    """Draws evenly from +-gain * sqrt(3 / fan), for rectified units (He et al. 2015)."""
    return InitializerFunction(
        lambda weight, _: nn.init.kaiming_uniform_(_matrix(weight), a, mode, nonlinearity)
    )


@Initializer.register("kaiming_normal")
def kaiming_normal(
    a: float = 0.0, mode: FanMode = "fan_in", nonlinearity: Nonlinearity = "leaky_relu"
) -> Initializer:
    """Normal, with a deviation of gain / sqrt(fan), for rectified units (He et al. 2015)."""
    return InitializerFunction(
        lambda weight, _: nn.init.kaiming_normal_(_matrix(weight), a, mode, nonlinearity)
    )


@Initializer.register("uniform_unit_scaling")
def uniform_unit_scaling(nonlinearity: Nonlinearity = "linear") -> Initializer:
    """Draws evenly from +-gain * sqrt(3 / n), n the size of all dimensions but the last.

    Sums over these keep the scale of what they are made of (Sussillo and Abbott 2014), as in
    AllenNLP.
    """

    def fill(parameter: Tensor, _: Gates | None) -> None:
        size = max(1, parameter.shape[:-1].numel())
        bound = nn.init.calculate_gain(nonlinearity) * (3 / size) ** 0.5
        nn.init.uniform_(parameter, -bound, bound)

    return InitializerFunction(fill)


@Initializer.register("sparse")
def sparse(sparsity: Annotated[float, Ge(0), Lt(1)], std: Gain = 0.01) -> Initializer:
    """Normal, with a ratio of the numbers in each column set to zero (Martens 2010).

    Args:
        sparsity: that ratio.
        std: the standard deviation of the others.
    """
    return InitializerFunction(
        lambda weight, _: nn.init.sparse_(_of_dims(weight, 2), sparsity, std)
    )


@Initializer.register("eye")
def eye() -> Initializer:
    """Fills with the identity matrix."""
    return InitializerFunction(lambda weight, _: nn.init.eye_(_of_dims(weight, 2)))


@Initializer.register("dirac")
def dirac() -> Initializer:
    """Makes a convolution pass its inputs on, as far as it has channels for them."""
    return InitializerFunction(lambda weight, _: nn.init.dirac_(_of_dims(weight, 3, 4, 5)))


@Initializer.register("orthogonal")
def orthogonal(gain: Gain = 1.0) -> Initializer:
    """Fills with a random matrix whose rows, or columns if these are fewer, are orthonormal.

    Dimensions behind the first count as one (Saxe et al. 2014).
    """
    return InitializerFunction(lambda weight, _: nn.init.orthogonal_(_matrix(weight), gain))


@Initializer.register("block_orthogonal")
def block_orthogonal(split_sizes: list[Dim] | None = None, gain: Gain = 1.0) -> Initializer:
    """Makes each block of a matrix orthonormal by itself, such as the gates of an LSTM.

    Args:
        split_sizes: the size of a block in each dimension; null for one block for each gate of
            the recurrent network that the matrix belongs to.
    """

    def fill(parameter: Tensor, gates: Gates | None) -> None:
        sizes = _block_sizes(_matrix(parameter), gates, split_sizes)
        starts = (range(0, dim, size) for dim, size in zip(parameter.shape, sizes, strict=True))
        for corner in product(*starts):
            places = zip(corner, sizes, strict=True)
            block = parameter[tuple(slice(start, start + size) for start, size in places)]
            block.copy_(nn.init.orthogonal_(torch.empty_like(block), gain))

    return InitializerFunction(torch.no_grad()(fill))


def _block_sizes(
    parameter: Tensor, gates: Gates | None, split_sizes: Sequence[int] | None
) -> Sequence[int]:
    shape = list(parameter.shape)
    if split_sizes is None:
        if gates is None:
            raise ValueError("it is not a weight of a recurrent network; set `split_sizes`")
        return [shape[0] // gates.num_gates, *shape[1:]]
    if len(split_sizes) != len(shape) or any(
        dim % size for dim, size in zip(shape, split_sizes, strict=True)
    ):
        raise ValueError(f"its shape {shape} has no blocks of the size {split_sizes}")
    return split_sizes


@Initializer.register("lstm_hidden_bias")
def lstm_hidden_bias() -> Initializer:
    """Sets the bias of an LSTM's forget gate to 1, and those of its other gates to 0.

    PyTorch's LSTM has two biases that it adds up: give this to `bias_hh`, and `zero` to `bias_ih`.
    An LSTM that adds 1 itself gets 0, so that the sum is 1 everywhere.
    """

    @torch.no_grad()
    def fill(parameter: Tensor, gates: Gates | None) -> None:
        if gates is None or gates.forget is None or not gates.is_bias:
            raise ValueError("it is not the bias of an LSTM")
        parameter.zero_()
        parameter.view(gates.num_gates, -1)[gates.forget] = 1 - gates.forget_bias

    return InitializerFunction(fill)


@final
@Initializer.register("prevent")
class Prevent(Initializer):
    """Leaves a parameter as it is; later expressions do not apply to it."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        pass


def _matrix(parameter: Tensor) -> Tensor:
    """Return a parameter, or raise ValueError if it has fewer than two dimensions."""
    if parameter.dim() < 2:
        raise ValueError(f"its shape is {list(parameter.shape)}; two dimensions are needed")
    return parameter


def _of_dims(parameter: Tensor, *allowed: int) -> Tensor:
    """Return a parameter, or raise ValueError for another number of dimensions."""
    if parameter.dim() not in allowed:
        numbers = " or ".join(map(str, allowed))
        raise ValueError(f"its shape is {list(parameter.shape)}; {numbers} dimensions are needed")
    return parameter
