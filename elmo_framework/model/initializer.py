"""The family of initializers, which fill parameters before training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
Gain: TypeAlias = Annotated[float, Gt(0)]


class Initializer(Registrable, ABC):
    """Fills a parameter."""

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
@Initializer.register("normal")
@dataclass(frozen=True)
class Normal(Initializer):
    """Draws from a normal distribution.

    Args:
        mean: of the distribution.
        std: its standard deviation.
    """

    mean: float = 0.0
    std: Annotated[float, Ge(0)] = 0.1

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        nn.init.normal_(parameter, self.mean, self.std)


@final
@Initializer.register("truncated_normal")
@dataclass(frozen=True)
class TruncatedNormal(Initializer):
    """Draws from a normal distribution, again where a number is more than two deviations off.

    That is TensorFlow's `truncated_normal_initializer`.

    Args:
        mean: of the distribution.
        std: its standard deviation before numbers are drawn again.
    """

    mean: float = 0.0
    std: Annotated[float, Gt(0)] = 1.0

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        reach = 2 * self.std
        nn.init.trunc_normal_(parameter, self.mean, self.std, self.mean - reach, self.mean + reach)


@final
@Initializer.register("uniform")
@dataclass(frozen=True)
class Uniform(Initializer):
    """Draws evenly from an interval.

    Args:
        a: its lower end.
        b: its upper end.
    """

    a: float = 0.0
    b: float = 1.0

    def __post_init__(self) -> None:
        if self.a > self.b:
            raise ValueError(f"a is {self.a} and b is {self.b}; a is the lower end")

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        nn.init.uniform_(parameter, self.a, self.b)


@final
@Initializer.register("constant")
@dataclass(frozen=True)
class Constant(Initializer):
    """Fills with one number.

    Args:
        val: the number.
    """

    val: float

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        nn.init.constant_(parameter, self.val)


@final
@Initializer.register("zero")
@dataclass(frozen=True)
class Zero(Initializer):
    """Fills with zeros."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        nn.init.zeros_(parameter)


@final
@Initializer.register("xavier_uniform")
@dataclass(frozen=True)
class XavierUniform(Initializer):
    """Draws evenly from +-gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).

    Args:
        gain: factor of all numbers.
    """

    gain: Gain = 1.0

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions or more."""
        _require_matrix(parameter)
        nn.init.xavier_uniform_(parameter, self.gain)


@final
@Initializer.register("xavier_normal")
@dataclass(frozen=True)
class XavierNormal(Initializer):
    """Normal, with a deviation of gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).

    Args:
        gain: factor of all numbers.
    """

    gain: Gain = 1.0

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions or more."""
        _require_matrix(parameter)
        nn.init.xavier_normal_(parameter, self.gain)


@dataclass(frozen=True)
class _Kaiming(Initializer, ABC):
    """For rectified units, with a deviation of gain / sqrt(fan) (He et al. 2015).

    Args:
        a: slope below zero, of `leaky_relu`.
        mode: whether the sums of the forward pass keep their size (`fan_in`) or those of the
            backward pass (`fan_out`).
        nonlinearity: what follows; it decides the gain.
    """

    a: float = 0.0
    mode: Literal["fan_in", "fan_out"] = "fan_in"
    nonlinearity: Nonlinearity = "leaky_relu"

    @property
    @abstractmethod
    def function(self) -> Callable[..., Tensor]:
        """The function of `torch.nn.init`."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions or more."""
        _require_matrix(parameter)
        self.function(parameter, self.a, self.mode, self.nonlinearity)


@final
@Initializer.register("kaiming_uniform")
@dataclass(frozen=True)
class KaimingUniform(_Kaiming):
    """Draws evenly from +-gain * sqrt(3 / fan) (He et al. 2015)."""

    function = staticmethod(nn.init.kaiming_uniform_)


@final
@Initializer.register("kaiming_normal")
@dataclass(frozen=True)
class KaimingNormal(_Kaiming):
    """Normal, with a deviation of gain / sqrt(fan) (He et al. 2015)."""

    function = staticmethod(nn.init.kaiming_normal_)


@final
@Initializer.register("uniform_unit_scaling")
@dataclass(frozen=True)
class UniformUnitScaling(Initializer):
    """Draws evenly from +-gain * sqrt(3 / n), n the size of all dimensions but the last.

    Sums over these keep the scale of what they are made of (Sussillo and Abbott 2014), as in
    AllenNLP.

    Args:
        nonlinearity: what follows; it decides the gain.
    """

    nonlinearity: Nonlinearity = "linear"

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter."""
        size = max(1, parameter.shape[:-1].numel())
        bound = nn.init.calculate_gain(self.nonlinearity) * (3 / size) ** 0.5
        nn.init.uniform_(parameter, -bound, bound)


@final
@Initializer.register("sparse")
@dataclass(frozen=True)
class Sparse(Initializer):
    """Normal, with a ratio of the numbers in each column set to zero (Martens 2010).

    Args:
        sparsity: that ratio.
        std: the standard deviation of the others.
    """

    sparsity: Annotated[float, Ge(0), Lt(1)]
    std: Gain = 0.01

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions."""
        _require_dims(parameter, 2)
        nn.init.sparse_(parameter, self.sparsity, self.std)


@final
@Initializer.register("eye")
@dataclass(frozen=True)
class Eye(Initializer):
    """Fills with the identity matrix."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions."""
        _require_dims(parameter, 2)
        nn.init.eye_(parameter)


@final
@Initializer.register("dirac")
@dataclass(frozen=True)
class Dirac(Initializer):
    """Makes a convolution pass its inputs on, as far as it has channels for them."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of three to five dimensions."""
        _require_dims(parameter, 3, 4, 5)
        nn.init.dirac_(parameter)


@final
@Initializer.register("orthogonal")
@dataclass(frozen=True)
class Orthogonal(Initializer):
    """Fills with a random matrix whose rows, or columns if these are fewer, are orthonormal.

    Dimensions behind the first count as one (Saxe et al. 2014).

    Args:
        gain: factor of all numbers.
    """

    gain: Gain = 1.0

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions or more."""
        _require_matrix(parameter)
        nn.init.orthogonal_(parameter, self.gain)


@final
@Initializer.register("block_orthogonal")
@dataclass(frozen=True)
class BlockOrthogonal(Initializer):
    """Makes each block of a matrix orthonormal by itself, such as the gates of an LSTM.

    Args:
        split_sizes: the size of a block in each dimension; null for one block for each gate of
            the recurrent network that the matrix belongs to.
        gain: factor of all numbers.
    """

    split_sizes: list[Dim] | None = None
    gain: Gain = 1.0

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill a parameter of two dimensions or more."""
        _require_matrix(parameter)
        sizes = self._sizes(parameter, gates)
        starts = (range(0, dim, size) for dim, size in zip(parameter.shape, sizes, strict=True))
        with torch.no_grad():
            for corner in product(*starts):
                places = zip(corner, sizes, strict=True)
                block = tuple(slice(start, start + size) for start, size in places)
                parameter[block] = nn.init.orthogonal_(
                    torch.empty_like(parameter[block]), self.gain
                )

    def _sizes(self, parameter: Tensor, gates: Gates | None) -> Sequence[int]:
        shape = list(parameter.shape)
        if self.split_sizes is None:
            if gates is None:
                raise ValueError("it is not a weight of a recurrent network; set `split_sizes`")
            return [shape[0] // gates.num_gates, *shape[1:]]
        if len(self.split_sizes) != len(shape) or any(
            dim % size for dim, size in zip(shape, self.split_sizes, strict=True)
        ):
            raise ValueError(f"its shape {shape} has no blocks of the size {self.split_sizes}")
        return self.split_sizes


@final
@Initializer.register("lstm_hidden_bias")
@dataclass(frozen=True)
class LstmHiddenBias(Initializer):
    """Sets the bias of an LSTM's forget gate to 1, and those of its other gates to 0.

    PyTorch's LSTM has two biases that it adds up: give this to `bias_hh`, and `zero` to `bias_ih`.
    An LSTM that adds 1 itself gets 0, so that the sum is 1 everywhere.
    """

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Fill the bias of an LSTM."""
        if gates is None or gates.forget is None or not gates.is_bias:
            raise ValueError("it is not the bias of an LSTM")
        with torch.no_grad():
            parameter.zero_()
            parameter.view(gates.num_gates, -1)[gates.forget] = 1 - gates.forget_bias


@final
@Initializer.register("prevent")
@dataclass(frozen=True)
class Prevent(Initializer):
    """Leaves a parameter as it is; later expressions do not apply to it."""

    def fill(self, parameter: Tensor, gates: Gates | None) -> None:
        """Do nothing."""


def _require_matrix(parameter: Tensor) -> None:
    if parameter.dim() < 2:
        raise ValueError(f"its shape is {list(parameter.shape)}; two dimensions are needed")


def _require_dims(parameter: Tensor, *allowed: int) -> None:
    if parameter.dim() not in allowed:
        numbers = " or ".join(map(str, allowed))
        raise ValueError(f"its shape is {list(parameter.shape)}; {numbers} dimensions are needed")
