"""Estimate of the time that the missing runs of a study take."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import mean
from typing import TypeAlias

from elmo_framework.study.record import Record
from elmo_framework.study.state import PlannedRun, StudyState

_Rates: TypeAlias = dict[Hashable, float]


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
    rates = _minutes_per_fraction(records)
    minutes = [estimate for run in missing if (estimate := _minutes(run, rates)) is not None]
    # A run without any similar one, or which is not known yet, is taken for an average one.
    num_unknown = len(missing) - len(minutes) + state.num_further_runs
    average = minutes or [each.minutes for each in records]
    if num_unknown and not average:
        return None
    return sum(minutes) + (num_unknown * mean(average) if num_unknown else 0.0)


def _minutes_per_fraction(records: Sequence[Record]) -> _Rates:
    """Return the mean minutes of training on all data, by cell and by config."""
    rates: dict[Hashable, list[float]] = {}
    for record in records:
        for key in (record.cell, record.config):
            rates.setdefault(key, []).append(record.minutes / record.fraction)
    return {key: mean(values) for key, values in rates.items()}


def _minutes(run: PlannedRun, rates: _Rates) -> float | None:
    rate = rates.get(run.plan.cell, rates.get(run.plan.config))
    return None if rate is None else rate * run.plan.fraction
