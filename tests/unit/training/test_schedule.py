"""Each schedule against its definition."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.errors import ConfigError
from elmo_framework.training.options import TrainerOptions
from elmo_framework.training.schedule import Schedule, ScheduleState


def multipliers(config: Any, *, num_steps: int = 10, steps_an_epoch: int = 2) -> list[float]:
    schedule = parse(Schedule, config, source="test").build()
    moments = [ScheduleState(step, num_steps, step // steps_an_epoch) for step in range(num_steps)]
    return [round(schedule.multiplier(moment), 6) for moment in moments]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("constant", [1.0] * 10),
        (
            {"type": "linear_with_warmup", "warmup_steps": 2},
            [0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125],
        ),
        (
            {"type": "constant_with_warmup", "warmup_steps": 4},
            [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        ),
        (
            {"type": "cosine_with_warmup"},
            [
                1,
                0.975528,
                0.904508,
                0.793893,
                0.654508,
                0.5,
                0.345492,
                0.206107,
                0.095492,
                0.024472,
            ],
        ),
        (
            {"type": "exponential", "gamma": 0.5},
            [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625],
        ),
        (
            {"type": "multi_step", "milestones": [1, 3], "gamma": 0.1},
            [1.0, 1.0, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01],
        ),
        (
            {"type": "slanted_triangular", "cut_frac": 0.2, "ratio": 2},
            [0.5, 0.75, 1.0, 0.9375, 0.875, 0.8125, 0.75, 0.6875, 0.625, 0.5625],
        ),
    ],
)
def test_a_schedule_follows_its_definition(config: Any, expected: list[float]) -> None:
    assert multipliers(config) == expected


def test_noam_is_largest_at_the_end_of_the_warm_up() -> None:
    factors = multipliers({"type": "noam", "model_size": 16, "warmup_steps": 4})
    assert factors.index(max(factors)) == 3
    assert factors[3] == pytest.approx(16**-0.5 * 4**-0.5)
    assert factors[0] == pytest.approx(16**-0.5 * 4**-1.5)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], 1.0),
        ([0.5, 0.6, 0.7], 1.0),
        ([0.5, 0.5, 0.5], 1.0),
        ([0.5, 0.4, 0.4, 0.4], 0.5),
        ([0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4], 0.25),
        ([0.5, 0.4, 0.4, 0.6, 0.5, 0.5], 1.0),
        ([-2.0, -1.0, -1.5, -1.0, -1.2], 0.5),
    ],
)
def test_plateau_reduces_the_rate(scores: list[float], expected: float) -> None:
    config = {"type": "reduce_on_plateau", "factor": 0.5, "patience": 2}
    schedule = parse(Schedule, config, source="test").build()
    assert schedule.multiplier(ScheduleState(99, scores=scores)) == expected


def test_schedule_with_decay_requires_num_epochs_or_num_steps() -> None:
    raw = {
        "learning_rate_scheduler": "linear_with_warmup",
        "num_epochs": None,
        "max_minutes": 5,
        "callbacks": [],
    }
    with pytest.raises(Exception, match="needs num_epochs or num_steps"):
        parse(TrainerOptions, raw, source="test").build()


def test_milestones_must_ascend() -> None:
    with pytest.raises(Exception, match=r"must be in ascending order, not \[3, 1\]"):
        parse(Schedule, {"type": "multi_step", "milestones": [3, 1]}, source="test").build()


def test_an_unknown_schedule_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'constant'"):
        parse(Schedule, "constnat", source="test")
