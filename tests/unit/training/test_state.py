"""Which evaluation is the best, and how many came after it."""

from __future__ import annotations

import pytest

from elmo_framework.training.state import TrainingState


def scored(*values: float, metric: str = "+f1") -> TrainingState:
    """Return the progress after an update and an evaluation for each value."""
    progress = TrainingState()
    for seconds, value in enumerate(values, start=1):
        progress = progress.after_step(seconds=float(seconds), is_epoch_end=False)
        scores = {"f1": value, "other": -value}
        progress = progress.after_evaluation(scores, metric=metric, seconds=seconds + 0.5)
    return progress


@pytest.mark.parametrize(
    ("values", "metric", "best_step", "num_later"),
    [
        ([0.5], "+f1", 1, 0),
        ([0.5, 0.5, 0.5], "+f1", 1, 2),
        ([0.5, 0.4, 0.6, 0.6, 0.1], "+f1", 3, 2),
        ([0.5, 0.4, 0.6], "-f1", 2, 1),
        ([0.5, 0.5], "-f1", 1, 1),
        ([-0.5, -0.4], "+f1", 2, 0),
    ],
)
def test_first_of_equal_scores_is_the_best(
    values: list[float], metric: str, best_step: int, num_later: int
) -> None:
    progress = scored(*values, metric=metric)
    assert progress.best_step == best_step
    assert progress.best_scores == {"f1": values[best_step - 1], "other": -values[best_step - 1]}
    assert progress.last_scores == {"f1": values[-1], "other": -values[-1]}
    assert progress.evaluations_without_improvement == num_later
    assert progress.is_best == (best_step == len(values))


def test_scores_are_stored_so_that_larger_is_better() -> None:
    assert scored(0.5, 0.4).scores == (0.5, 0.4)
    assert scored(0.5, 0.4, metric="-f1").scores == (-0.5, -0.4)


def test_before_an_evaluation_there_is_no_best() -> None:
    progress = TrainingState().after_step(seconds=2.0, is_epoch_end=True)
    assert (progress.step, progress.epochs, progress.seconds) == (1, 1, 2.0)
    assert progress.best_step is progress.best_scores is None
    assert not progress.is_best
    assert progress.evaluations_without_improvement == 0


def test_training_state_survives_json() -> None:
    progress = scored(0.5, 0.7, 0.6)
    assert (progress.seconds, progress.last_evaluation) == (3.5, 3.5)
    assert TrainingState.from_json(progress.to_json()) == progress
