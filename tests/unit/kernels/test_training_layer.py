"""A layer in one call equals the layer step by step, in values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import blocked_product
from elmo_framework.kernels.blocked_product import TrainingPrecision
from elmo_framework.kernels.training_layer import TrainingLayer
from elmo_framework.nn.lstm_layer import LstmState, train_layer

pytestmark = pytest.mark.skipif(
    "float32" not in blocked_product._fast_precisions(), reason="needs a C compiler and AVX-512"
)
NUM_ROWS, CELL = 5, 70


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_product, "_SMALLEST", 0)
    monkeypatch.setattr(blocked_product, "_fast_precisions", lambda: ("float32", "bfloat16"))


def random(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).requires_grad_()


def results(
    sizes: list[int], dim: int | None, clip: float | None, precision: TrainingPrecision
) -> list[Tensor]:
    """Return the outputs, the last states, and all gradients."""
    hidden = dim or CELL
    gates, start = random(sum(sizes), 4 * CELL), [random(NUM_ROWS, d) for d in (hidden, CELL)]
    recurrent, projection = random(4 * CELL, hidden), random(dim, CELL) if dim else None
    outputs, end = train_layer(
        gates,
        sizes,
        LstmState(*start),
        recurrent_weight=recurrent,
        projection_weight=projection,
        cell_clip=clip,
        projection_clip=clip and 4 * clip,
        precision=precision,
    )
    total = sum((each * random(*each.shape).detach()).sum() for each in (outputs, *end))
    leaves = [gates, *start, recurrent] + ([] if projection is None else [projection])
    return [outputs, *end, *torch.autograd.grad(total, leaves)]


@pytest.mark.parametrize(
    "wrong", [{"inputs": (9, 280)}, {"inputs": (10, 279)}, {"hidden": (4, 70)}, {"memory": (4, 70)}]
)
def test_tensors_of_other_shapes_are_refused(wrong: dict[str, tuple[int, ...]]) -> None:
    layer = TrainingLayer(random(280, 70).detach(), None, [5, 5], None, None, "float32")
    shapes = {"inputs": (10, 280), "hidden": (5, 70), "memory": (5, 70)}
    layer.forward(*(random(*shape).detach() for shape in shapes.values()))
    with pytest.raises(ValueError, match=r"has the shape \(.*\); expected"):
        layer.forward(*(random(*shape).detach() for shape in {**shapes, **wrong}.values()))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("dim", [None, 33])
@pytest.mark.parametrize("sizes", [[5, 5, 5], [4, 3, 3, 1], [1], []], ids=str)
def test_one_call_equals_single_steps(
    sizes: list[int],
    dim: int | None,
    clip: float | None,
    precision: TrainingPrecision,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = results(sizes, dim, clip, precision)
    monkeypatch.setattr(TrainingLayer, "is_supported", lambda *_: False)
    for one, other in zip(found, results(sizes, dim, clip, precision), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_without_gradients_of_outputs_those_of_the_state_remain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gradients = []
    for _ in range(2):
        gates, start = random(10, 4 * CELL), LstmState(random(NUM_ROWS, 33), random(NUM_ROWS, CELL))
        clips = {"cell_clip": 3.0, "projection_clip": 3.0}
        weights = {"recurrent_weight": random(4 * CELL, 33), "projection_weight": random(33, CELL)}
        _, end = train_layer(gates, [5, 5], start, **weights, **clips)
        gradients.append(torch.autograd.grad(end.memory.sum(), [gates, *start]))
        monkeypatch.setattr(TrainingLayer, "is_supported", lambda *_: False)
    torch.testing.assert_close(*gradients)


def test_a_weight_changed_before_the_backward_pass_is_an_error() -> None:
    weight = random(4 * CELL, CELL)
    outputs, _ = train_layer(
        random(5, 4 * CELL),
        [5],
        LstmState(random(NUM_ROWS, CELL), random(NUM_ROWS, CELL)),
        recurrent_weight=weight,
        projection_weight=None,
        cell_clip=None,
        projection_clip=None,
    )
    with torch.no_grad():
        weight += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()
