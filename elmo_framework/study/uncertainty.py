"""Intervals and p-values of a study, over seeds and over the examples that its records count."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from elmo_framework.analysis.scored_run import EvaluationSplit
from elmo_framework.analysis.statistics import (
    LEVEL,
    NUM_RESAMPLES,
    Estimate,
    Resamples,
    distributions,
)
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.record import Record

_TOLERANCE = 1e-4
"""The largest difference between a score and the one of its terms, which float32 explains."""

_ROUNDING = 1e-12
"""The largest standard error, relative to a value above 1, of scores that differ by rounding."""


@dataclass(frozen=True)
class RunScore:
    """A score of a run.

    Attributes:
        record: that it comes from.
        split: of the data.
        metric: with its sign.
        score: as the metric gives it.
    """

    record: Record
    split: EvaluationSplit
    metric: str
    score: float


class Uncertainty:
    """The uncertainty of means and differences of runs that are scored on the same data.

    It is over seeds and examples if that is possible, else over seeds.

    Args:
        runs: of one config on one split.
        folder: of the study.
        num_resamples: number of bootstrap resamples.

    Attributes:
        obstacle: why it is over seeds only; empty if it is over examples too.

    Raises:
        DataError: terms are damaged.
    """

    def __init__(
        self, runs: Sequence[RunScore], folder: StudyFolder, *, num_resamples: int = NUM_RESAMPLES
    ) -> None:
        self._numbers = {run.record.name: number for number, run in enumerate(runs)}
        self._runs, self._resamples = runs, None
        self.obstacle, terms = _load_terms(runs, folder)
        if not self.obstacle:
            metric, first = runs[0].metric[1:], runs[0].record
            score = score_function(first.experiment, source=first.name)
            resamples = Resamples(terms, score, [metric], num_resamples=num_resamples)
            if _is_close(resamples.observed[metric].tolist(), [run.score for run in runs]):
                self._resamples = resamples
            else:
                self.obstacle = "the terms of the examples do not give the scores of the records"

    def mean(self, runs: Sequence[RunScore]) -> Estimate:
        """Estimate the mean of runs."""
        if self._resamples is None:
            return replace(_student([run.score for run in runs]), p=None)
        return self._resamples.mean(self._metric, self._numbers_of(runs))

    def difference(self, runs: Sequence[RunScore], others: Sequence[RunScore]) -> Estimate:
        """Estimate the mean of runs minus that of others; runs of the same seeds are paired."""
        is_paired = [run.record.seed for run in runs] == [run.record.seed for run in others]
        if self._resamples is not None:
            sides = self._numbers_of(runs), self._numbers_of(others)
            return self._resamples.difference(self._metric, *sides, is_paired=is_paired)
        ours, theirs = ([run.score for run in side] for side in (runs, others))
        if is_paired:
            return _student([one - other for one, other in zip(ours, theirs, strict=True)])
        return _welch(ours, theirs)

    def probabilities_of_best(self, groups: Sequence[Sequence[RunScore]]) -> list[float] | None:
        """Return in how many of the resamples of examples the mean of each group is the best."""
        if self._resamples is None:
            return None
        return self._resamples.shares_of_best(
            self._metric,
            [self._numbers_of(runs) for runs in groups],
            is_larger_better=self._runs[0].metric.startswith("+"),
        )

    @property
    def _metric(self) -> str:
        return self._runs[0].metric[1:]

    def _numbers_of(self, runs: Sequence[RunScore]) -> list[int]:
        return [self._numbers[run.record.name] for run in runs]


def _load_terms(runs: Sequence[RunScore], folder: StudyFolder) -> tuple[str, list[ExampleTerms]]:
    """Return what keeps the terms of runs from being compared, if anything does, and the terms."""
    if not runs:
        return "there are no runs", []
    paths = [folder.terms(run.record.name, run.split) for run in runs]
    if lacking := [path for path in paths if not path.is_file()]:
        message = "the records have no terms of the examples"
        if len(lacking) < len(paths):
            message = f"{lacking[0].relative_to(folder.path)} is missing"
        return message, []
    terms = [ExampleTerms.load(path) for path in paths]
    is_one = len({each.digest for each in terms}) == 1
    return "" if is_one else "the runs are scored on different examples", terms


def _is_close(scores: Sequence[float], others: Sequence[float]) -> bool:
    pairs = zip(scores, others, strict=True)
    return all(math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE) for pair in pairs)


def _student(scores: Sequence[float]) -> Estimate:
    """Return the interval of a mean, and the p-value that it is 0, by Student's t."""
    mean, size = statistics.fmean(scores), len(scores)
    error = statistics.stdev(scores) / math.sqrt(size) if size > 1 else 0.0
    return _with_error(mean, error, size - 1)


def _welch(scores: Sequence[float], others: Sequence[float]) -> Estimate:
    """Return the same of the difference of two means of independent runs (Welch 1947)."""
    difference = statistics.fmean(scores) - statistics.fmean(others)
    if min(len(scores), len(others)) < 2:
        return Estimate(difference, None, None)
    parts = [statistics.variance(each) / len(each) for each in (scores, others)]
    sizes = len(scores), len(others)
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    degrees = sum(parts) ** 2 / spread if spread else math.inf
    return _with_error(difference, math.sqrt(sum(parts)), degrees)


def _with_error(value: float, error: float, degrees: float) -> Estimate:
    if error <= _ROUNDING * max(1.0, abs(value)):
        return Estimate(value, None, None)
    special = distributions()
    margin = float(special.stdtrit(degrees, (1 + LEVEL) / 2)) * error
    p = 2 * float(special.stdtr(degrees, -abs(value) / error))
    return Estimate(value, (value - margin, value + margin), p)
