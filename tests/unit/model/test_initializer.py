import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import members
from elmo_framework.model.initializer import Initializer
from elmo_framework.nn.part import Gates

WIDE, TALL = (40, 90), (90, 40)
LSTM_BIAS = Gates(4, forget=1, is_bias=True)
SHAPES = {"dirac": (6, 4, 3), "lstm_hidden_bias": (12,)}
REQUIRED: dict[str, dict[str, float]] = {"constant": {"val": 0.25}, "sparse": {"sparsity": 0.5}}


def filled(
    shape: tuple[int, ...], name: str, gates: Gates | None = None, **options: Any
) -> np.ndarray:
    """A parameter after an initializer has filled it, whatever it held before."""
    torch.manual_seed(5)
    parameter = nn.Parameter(torch.full(shape, math.nan))
    with torch.no_grad():
        initializer(name, **options).fill(parameter, gates)
    return parameter.detach().numpy()


def initializer(name: str, **options: Any) -> Initializer:
    return parse(Initializer, {"type": name, **options}, source="test").build()


def spread(bound: float) -> float:
    """The deviation of numbers that are drawn evenly from -bound to bound."""
    return bound / math.sqrt(3)


@pytest.mark.parametrize(
    ("name", "options", "bound"),
    [
        ("uniform", {"a": -0.3, "b": 0.3}, 0.3),
        ("xavier_uniform", {}, math.sqrt(6 / 130)),
        ("xavier_uniform", {"gain": 2.0}, 2 * math.sqrt(6 / 130)),
        ("kaiming_uniform", {"nonlinearity": "linear"}, math.sqrt(3 / 90)),
        ("kaiming_uniform", {"nonlinearity": "relu", "mode": "fan_out"}, math.sqrt(6 / 40)),
        ("kaiming_uniform", {"a": math.sqrt(5)}, math.sqrt(1 / 90)),
        ("uniform_unit_scaling", {}, math.sqrt(3 / 40)),
        ("uniform_unit_scaling", {"nonlinearity": "relu"}, math.sqrt(6 / 40)),
    ],
)
def test_even_numbers_fill_their_interval(name: str, options: dict[str, Any], bound: float) -> None:
    numbers = filled(WIDE, name, **options)

    assert np.abs(numbers).max() <= bound
    assert np.abs(numbers).max() > 0.99 * bound
    assert numbers.std() == pytest.approx(spread(bound), rel=0.05)
    assert abs(numbers.mean()) < 0.1 * bound


@pytest.mark.parametrize(
    ("name", "options", "std"),
    [
        ("normal", {}, 0.1),
        ("normal", {"mean": 3.0, "std": 0.5}, 0.5),
        ("xavier_normal", {}, math.sqrt(2 / 130)),
        ("kaiming_normal", {"nonlinearity": "relu"}, math.sqrt(2 / 90)),
        ("kaiming_normal", {"nonlinearity": "linear", "mode": "fan_out"}, math.sqrt(1 / 40)),
    ],
)
def test_normal_numbers_have_their_deviation(
    name: str, options: dict[str, Any], std: float
) -> None:
    numbers = filled(WIDE, name, **options)

    assert numbers.std() == pytest.approx(std, rel=0.05)
    assert numbers.mean() == pytest.approx(options.get("mean", 0.0), abs=0.1 * std)
    assert np.abs(numbers - numbers.mean()).max() > 2.5 * std


def test_truncated_normal_numbers_lie_within_two_deviations() -> None:
    numbers = filled((100, 200), "truncated_normal", mean=1.0, std=0.05)

    assert np.abs(numbers - 1).max() <= 0.1
    assert np.abs(numbers - 1).max() > 0.099
    # The deviation of what is left between -2 and 2 of a standard normal distribution.
    assert numbers.std() == pytest.approx(0.05 * 0.8796, rel=0.02)


def test_constants_fill_everything() -> None:
    assert (filled((3, 2), "constant", val=0.25) == 0.25).all()
    assert (filled((3, 2), "zero") == 0).all()
    assert (filled((2, 3), "eye") == np.eye(2, 3)).all()


def test_sparse_columns_have_their_ratio_of_zeros() -> None:
    numbers = filled(TALL, "sparse", sparsity=0.3, std=2.0)

    assert ((numbers == 0).sum(axis=0) == 27).all()
    assert numbers[numbers != 0].std() == pytest.approx(2.0, rel=0.05)


def test_dirac_passes_channels_on() -> None:
    kernel = filled((2, 2, 3), "dirac")
    inputs = torch.randn(1, 2, 9)

    outputs = nn.functional.conv1d(inputs, torch.from_numpy(kernel), padding=1)

    torch.testing.assert_close(outputs, inputs)


@pytest.mark.parametrize("shape", [WIDE, TALL, (6, 5, 4)])
def test_shorter_side_of_orthogonal_matrix_is_orthonormal(shape: tuple[int, ...]) -> None:
    matrix = filled(shape, "orthogonal", gain=3.0).reshape(shape[0], -1) / 3

    assert_orthonormal(matrix)


def test_each_block_is_orthonormal_by_itself() -> None:
    matrix = filled((20, 18), "block_orthogonal", split_sizes=[5, 9], gain=2.0) / 2

    blocks = [matrix[i : i + 5, j : j + 9] for i in range(0, 20, 5) for j in range(0, 18, 9)]
    for block in blocks:
        assert_orthonormal(block)
    assert np.abs(blocks[0] - blocks[1]).max() > 0.01


def test_blocks_are_the_gates_where_no_sizes_are_stated() -> None:
    matrix = filled((12, 7), "block_orthogonal", Gates(3, forget=None))

    for gate in np.split(matrix, 3):
        assert_orthonormal(gate)


@pytest.mark.parametrize(
    ("shape", "gates", "expected"),
    [
        ((8,), LSTM_BIAS, [0, 0, 1, 1, 0, 0, 0, 0]),
        ((8,), LSTM_BIAS._replace(forget=2), [0, 0, 0, 0, 1, 1, 0, 0]),
        ((4, 2), LSTM_BIAS._replace(forget=2), [[0, 0], [0, 0], [1, 1], [0, 0]]),
        ((8,), LSTM_BIAS._replace(forget_bias=1.0), [0] * 8),
    ],
)
def test_only_the_forget_gate_starts_open(
    shape: tuple[int, ...], gates: Gates, expected: list[Any]
) -> None:
    assert (filled(shape, "lstm_hidden_bias", gates) == np.array(expected)).all()


def test_prevent_leaves_a_parameter_alone() -> None:
    assert np.isnan(filled((2, 2), "prevent")).all()


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        ("orthogonal", (5,), {}, r"its shape is \[5\]; two dimensions are needed"),
        ("xavier_uniform", (5,), {}, "two dimensions are needed"),
        ("xavier_normal", (), {}, "two dimensions are needed"),
        ("kaiming_normal", (5,), {}, "two dimensions are needed"),
        ("eye", (2, 2, 2), {}, r"its shape is \[2, 2, 2\]; 2 dimensions are needed"),
        ("sparse", (5,), {"sparsity": 0.5}, "2 dimensions are needed"),
        ("dirac", (5, 5), {}, "3 or 4 or 5 dimensions are needed"),
        ("block_orthogonal", (5,), {}, "two dimensions are needed"),
        ("block_orthogonal", (4, 4), {}, "not a weight of a recurrent network; set `split_sizes`"),
        (
            "block_orthogonal",
            (4, 6),
            {"split_sizes": [2, 4]},
            r"its shape \[4, 6\] has no blocks of the size \[2, 4\]",
        ),
        ("block_orthogonal", (4, 6), {"split_sizes": [2]}, "has no blocks of the size"),
        ("lstm_hidden_bias", (8,), {}, "it is not the bias of an LSTM"),
    ],
)
def test_a_parameter_of_another_shape_is_refused(
    name: str, shape: tuple[int, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        filled(shape, name, **options)


@pytest.mark.parametrize("gates", [Gates(4, forget=1), Gates(3, forget=None, is_bias=True)])
def test_only_the_bias_of_an_lstm_has_a_forget_gate(gates: Gates) -> None:
    with pytest.raises(ValueError, match="it is not the bias of an LSTM"):
        filled((12,), "lstm_hidden_bias", gates)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(Exception, match=r"a is 2\.0 and b is 1\.0"):
        initializer("uniform", a=2.0, b=1.0)


@pytest.mark.parametrize("name", sorted(members(Initializer)))
def test_every_initializer_checks_shapes_without_memory(name: str) -> None:
    parameter = torch.empty(SHAPES.get(name, (8, 4)), device="meta")

    initializer(name, **REQUIRED.get(name, {})).fill(parameter, LSTM_BIAS)

    assert parameter.is_meta


def assert_orthonormal(matrix: np.ndarray | Tensor) -> None:
    rows = np.asarray(matrix, dtype=np.float64)
    rows = rows if rows.shape[0] <= rows.shape[1] else rows.T
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-5)
