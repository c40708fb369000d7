"""Estimate of the time that the missing runs of a study take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from elmo_framework.study.record import Record
from elmo_framework.study.state import PlannedRun, StudyState


def minutes_left(state: StudyState, runs: Sequence[PlannedRun]) -> float | None:
    """Estimate the minutes of training that runs take, by records of similar runs.

    Args:
        state: of the study.
        runs: that are not trained yet.

    Returns:
        The sum over the runs without a record and those that a search adds later; None if there is
        nothing to compare with.
    """
    records, missing = state.records(), [run for run in runs if state.record(run.plan) is None]
    minutes = [estimate for run in missing if (estimate := _minutes(run, records)) is not None]
    # A run without any similar one, or which is not known yet, is taken for an average one.
    num_unknown = len(missing) - len(minutes) + state.num_further_runs
    average = minutes or [each.minutes for each in records]
    if num_unknown and not average:
        return None
    return sum(minutes) + (num_unknown * mean(average) if num_unknown else 0.0)


def _minutes(run: PlannedRun, records: Sequence[Record]) -> float | None:
    same_config = [each for each in records if each.config == run.plan.config]
    same_cell = [each for each in same_config if each.cell == run.plan.cell]
    similar = same_cell or same_config
    if not similar:
        return None
    return mean(each.minutes * run.plan.fraction / each.fraction for each in similar)
