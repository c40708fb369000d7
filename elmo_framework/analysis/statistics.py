"""Intervals and p-values of scores, over examples and over seeds.

Scores are functions of sums over examples, so that a resample of examples is a weighted sum. All
resamples are scored at the same time, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any, TypeAlias, final

import numpy as np
from jaxtyping import Float

from elmo_framework.experiment.terms import ExampleTerms, ScoreFunction
from elmo_framework.io.extras import import_extra

NUM_RESAMPLES = 10_000
LEVEL = 0.95
"""Of intervals."""

_BLOCK = 1 << 22
"""Weights in memory at the same time: 32 MiB."""

_TIE = 1e-12
"""Scores that are closer than this differ by rounding only."""

_NOT_FOR_ARRAYS = (TypeError, ValueError, AttributeError, ArithmeticError, LookupError)
"""What metrics that are written for numbers raise for arrays."""

_Weights: TypeAlias = Float[np.ndarray, "resamples groups"]
_Side: TypeAlias = tuple[Float[np.ndarray, " runs"], Float[np.ndarray, "runs resamples"]]
"""The scores of runs on the file, and on each resample."""


@final
@dataclass(frozen=True)
class Estimate:
    """The mean score of several runs, or the difference of two means, with its uncertainty.

    Attributes:
        value: on the file itself.
        interval: the 95 % interval; None if nothing can be resampled, as there is only one group
            and one run, or if the score is undefined for a resample.
        p: the two-sided p-value of the hypothesis that the value is 0, which is the smallest level
            whose interval excludes 0; None without an interval.
    """

    value: float
    interval: tuple[float, float] | None
    p: float | None

    def interval_of_ratio(self, *, is_difference: bool) -> tuple[float, float] | None:
        """Return the interval of a score in [0, 1], cut there: a few seeds can give a wider one."""
        if self.interval is None:
            return None
        low, high = self.interval
        return max(low, -1.0 if is_difference else 0.0), min(high, 1.0)


@final
class Resamples:
    """The scores of runs on bootstrap resamples of the groups of a file, the same for all runs.

    If there are no more than `num_resamples` different draws, each of them is taken once.

    Args:
        runs: the terms of each run on the file.
        score: computes scores from sums.
        metrics: the scores to compute.
        num_resamples: number of resamples.
        seed: of the draws.

    Attributes:
        num_groups: the number of groups of the file.
        observed: the score of each run on the file itself, by metric.
    """

    def __init__(
        self,
        runs: Sequence[ExampleTerms],
        score: ScoreFunction,
        metrics: Sequence[str],
        *,
        num_resamples: int = NUM_RESAMPLES,
        seed: int = 0,
    ) -> None:
        self._scorer = _Scorer(runs, score, metrics)
        self._num_resamples, self._seed = num_resamples, seed
        self.num_groups = runs[0].num_groups
        observed = self._scorer.resampled(np.ones((1, self.num_groups)))
        self.observed = {name: observed[row, :, 0] for row, name in enumerate(metrics)}
        blocks = _draws(self.num_groups, num_resamples, np.random.default_rng(seed))
        resampled = np.concatenate([self._scorer.resampled(block) for block in blocks], axis=2)
        self._resampled = dict(zip(metrics, resampled, strict=True))

    def mean(self, metric: str, runs: Sequence[int]) -> Estimate:
        """Estimate the mean score of some of the runs."""
        return self._estimate([self._side(metric, runs)])

    def difference(
        self, metric: str, runs: Sequence[int], others: Sequence[int], *, is_paired: bool
    ) -> Estimate:
        """Estimate the mean score of runs minus that of others.

        Args:
            metric: the score.
            runs: indices of runs.
            others: indices of the runs to compare with.
            is_paired: whether the runs of both sides have the same seeds, in the same order; they
                are then resampled in pairs.
        """
        (observed, resampled), (observed_others, resampled_others) = (
            self._side(metric, side) for side in (runs, others)
        )
        if is_paired:
            return self._estimate([(observed - observed_others, resampled - resampled_others)])
        return self._estimate([(observed, resampled), (-observed_others, -resampled_others)])

    def shares_of_best(
        self, metric: str, groups: Sequence[Sequence[int]], *, is_larger_better: bool
    ) -> list[float]:
        """Return the share of the resamples in which the mean of each group of runs is the best.

        Ties are divided.
        """
        means = np.array([self._side(metric, runs)[1].mean(axis=0) for runs in groups])
        signed = means if is_larger_better else -means
        is_best = signed >= signed.max(axis=0) - _TIE
        return [float(share) for share in (is_best / is_best.sum(axis=0)).mean(axis=1)]

    def randomization(
        self, runs: Sequence[int], others: Sequence[int], *, is_paired: bool
    ) -> dict[str, float | None]:
        """Return two-sided p-values by approximate randomization (Noreen 1989), by metric.

        Two runs exchange their outputs for a random half of the groups. The hypothesis is that it
        makes no difference which of the two an output is from; other seeds are not considered. The
        p-values are exact if there are no more than `num_resamples` ways to exchange.

        Args:
            runs: indices of runs.
            others: indices of the runs to compare with.
            is_paired: whether each run is paired with the other of its seed; otherwise it is paired
                with each of the others.

        Returns:
            None where a score is not a number, as that of some exchanges may be.
        """
        pairs = [*(zip(runs, others, strict=True) if is_paired else product(runs, others))]
        blocks = _swaps(self.num_groups, self._num_resamples, np.random.default_rng(self._seed))
        differences = np.concatenate([self._scorer.exchanged(pairs, each) for each in blocks], 1)
        num_added = 0 if 2**self.num_groups <= self._num_resamples else 1
        p_values = dict[str, float | None]()
        for (name, observed), resampled in zip(self.observed.items(), differences, strict=True):
            value = np.mean([observed[one] - observed[other] for one, other in pairs])
            num_extreme = (np.abs(resampled) >= abs(value) - _TIE).sum() + num_added
            is_defined = np.isfinite(value) and np.isfinite(resampled).all()
            p = float(num_extreme / (len(resampled) + num_added))
            p_values[name] = p if is_defined else None
        return p_values

    def _side(self, metric: str, runs: Sequence[int]) -> _Side:
        return self.observed[metric][[*runs]], self._resampled[metric][[*runs]]

    def _estimate(self, sides: Sequence[_Side]) -> Estimate:
        """Estimate the sum of the means of independent sets of runs.

        A deviation is that of the resampled groups, plus that of the resampled seeds of each side.
        Both are widened by sqrt(n / (n - 1)), as a resample of n varies too little by this factor.
        """
        value = float(sum(observed.mean() for observed, _ in sides))
        means = sum(resampled.mean(axis=0) for _, resampled in sides)
        deviations = _widening(self.num_groups) * (means - value)
        parts = [_Variance(float(deviations.var()), float(deviations.var()), self.num_groups)]
        generator = np.random.default_rng((self._seed, 1))
        # All resamples of few groups are fewer than are needed of the seeds, and for small levels.
        deviations = np.tile(deviations, ceil(self._num_resamples / len(deviations)))
        for observed, resampled in sides:
            num_runs = len(observed)
            if num_runs > 1:
                part = _seed_variance(observed, resampled)
                drawn = generator.integers(num_runs, size=(len(deviations), num_runs))
                of_seeds = observed[drawn].mean(axis=1) - observed.mean()
                deviations += part.shrinkage * _widening(num_runs) * of_seeds
                parts.append(part)
        is_defined = self.num_groups > 1 or bool(np.ptp(deviations) > _TIE)
        if not (is_defined and np.isfinite(deviations).all() and np.isfinite(value)):
            return Estimate(value, None, None)
        return _inverted(value, deviations, _degrees_of_freedom(parts))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for several tests (Holm 1979), in the order of the given ones."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(np.array(p_values)[order] * factors), 1)
    return adjusted.tolist()


def error_reduction(score: float, other: float, *, sign: int) -> float | None:
    """Return the part of the error of another score that a score avoids.

    The error is the distance to 1; where a smaller score is better, it is the score.

    Args:
        score: a score.
        other: what it is compared with.
        sign: 1 if a larger score is better, -1 if a smaller one is, 0 if that is unknown.

    Returns:
        At most 1, and negative if `score` is worse; None if the sign is 0, `other` has no error, or
        the scores, of which larger ones are better, are not in [0, 1].
    """
    if sign < 0:
        return (other - score) / other if other > 0 else None
    is_fraction = 0 <= other < 1 and 0 <= score <= 1
    return (score - other) / (1 - other) if sign and is_fraction else None


def scores_of_rows(
    score: ScoreFunction,
    names: Sequence[str],
    sums: Float[np.ndarray, "rows terms"],
    metrics: Sequence[str],
) -> Float[np.ndarray, "metrics rows"]:
    """Score each row of sums: all as arrays, or one by one if a metric does not take arrays.

    Args:
        score: computes scores from sums.
        names: of the terms.
        sums: to score.
        metrics: the scores to compute.
    """

    def one(row: int) -> list[float]:
        scores = score(dict(zip(names, sums[row].tolist(), strict=True)))
        return [scores[metric] for metric in metrics]

    try:
        by_name = score(dict(zip(names, sums.T, strict=True)))
        scores = np.array([np.broadcast_to(by_name[metric], len(sums)) for metric in metrics])
        checked = {0, len(sums) // 2, len(sums) - 1}
        if all(np.allclose(scores[:, row], one(row), equal_nan=True) for row in checked):
            return scores
    except _NOT_FOR_ARRAYS:
        pass
    return np.array([one(row) for row in range(len(sums))]).T


class _Scorer:
    """Scores weighted sums of the groups of several runs."""

    def __init__(
        self, runs: Sequence[ExampleTerms], score: ScoreFunction, metrics: Sequence[str]
    ) -> None:
        self._names = sorted({name for run in runs for name in run.names})
        self._score, self._metrics = score, metrics
        self._totals = []
        for run in runs:
            totals = np.zeros((run.num_groups, len(self._names)))
            totals[:, [self._names.index(name) for name in run.names]] = run.by_group()
            self._totals.append(totals)

    def resampled(self, weights: _Weights) -> Float[np.ndarray, "metrics runs resamples"]:
        """Score each run with weighted groups."""
        return np.stack([self._scored(weights @ totals) for totals in self._totals], axis=1)

    def exchanged(
        self, pairs: Sequence[tuple[int, int]], swaps: _Weights
    ) -> Float[np.ndarray, "metrics resamples"]:
        """Return the mean difference of pairs of runs that exchange some groups.

        Args:
            pairs: indices of runs.
            swaps: 1 where a group is exchanged, else 0.
        """
        differences: list[Float[np.ndarray, "metrics resamples"]] = []
        for one, other in pairs:
            first, second = self._totals[one], self._totals[other]
            moved = swaps @ (second - first)
            ahead = self._scored(first.sum(axis=0) + moved)
            differences.append(ahead - self._scored(second.sum(axis=0) - moved))
        return np.asarray(np.mean(differences, axis=0))

    def _scored(
        self, sums: Float[np.ndarray, "resamples terms"]
    ) -> Float[np.ndarray, "metrics resamples"]:
        return scores_of_rows(self._score, self._names, sums, self._metrics)


def _inverted(value: float, deviations: Float[np.ndarray, " resamples"], df: float) -> Estimate:
    """Return the interval of a value, and the level at which it excludes 0.

    Quantiles of the deviations are widened by the ratio of Student's t to the normal distribution:
    it matters for few runs and few groups.
    """
    levels = 2 * np.arange(1, len(deviations) // 2 + 1) / (len(deviations) + 1)
    adverse = np.sort(-np.sign(value) * deviations)[::-1][: len(levels)]
    num_reaching = int((adverse * _t_ratio(levels, df) >= abs(value) - _TIE).sum())
    p = min(1.0, 2 * (num_reaching + 1) / (len(deviations) + 1)) if abs(value) > _TIE else 1.0
    low, high = np.quantile(deviations, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    ratio = float(_t_ratio(np.array([1 - LEVEL]), df)[0])
    return Estimate(value, (value + ratio * float(low), value + ratio * float(high)), p)


def distributions() -> Any:
    """Return `scipy.special`; commands call this before they compute anything.

    Raises:
        RunError: the extra `statistics` is not installed.
    """
    return import_extra("scipy.special", "statistics")


def _t_ratio(levels: Float[np.ndarray, " levels"], df: float) -> Float[np.ndarray, " levels"]:
    special = distributions()
    return np.asarray(special.stdtrit(df, levels / 2) / special.ndtri(levels / 2))


@dataclass(frozen=True)
class _Variance:
    """A part of the variance of an estimate.

    Attributes:
        value: the estimate of this part.
        measured: what it is estimated from; it may include variance of other parts.
        size: the number of groups or of runs.
    """

    value: float
    measured: float
    size: int

    @property
    def shrinkage(self) -> float:
        return float(np.sqrt(self.value / self.measured)) if self.measured else 0.0


def _seed_variance(
    observed: Float[np.ndarray, " runs"], resampled: Float[np.ndarray, "runs resamples"]
) -> _Variance:
    """Estimate the variance of a mean over runs that is due to their seeds.

    Scores of runs on one file differ also because each run errs on other examples. That part is in
    the deviations of the groups already; without this correction it would count three times
    (Owen 2007, "The pigeonhole bootstrap").
    """
    size = len(observed)
    of_examples = (resampled - resampled.mean(axis=0)).var(axis=1).sum() / (size - 1)
    measured = float(observed.var(ddof=1))
    return _Variance(max(0.0, measured - float(of_examples)) / size, measured / size, size)


def _degrees_of_freedom(parts: Sequence[_Variance]) -> float:
    """Return those of a sum of variances (Satterthwaite 1946)."""
    total = sum(part.value for part in parts)
    denominator = sum(part.measured**2 / (part.size - 1) for part in parts if part.size > 1)
    return total**2 / denominator if denominator and total else np.inf


def _widening(size: int) -> float:
    return float(np.sqrt(size / (size - 1))) if size > 1 else 0.0


def _draws(num_groups: int, size: int, generator: np.random.Generator) -> Iterator[_Weights]:
    """Yield how often each group is drawn in each bootstrap resample, in blocks."""
    if num_groups**num_groups <= size:
        draws = np.array([*product(range(num_groups), repeat=num_groups)])
        yield (draws[:, :, None] == np.arange(num_groups)).sum(axis=1).astype(np.float64)
        return
    for rows in _blocks(size, num_groups):
        drawn = generator.integers(num_groups, size=(rows, num_groups))
        drawn += np.arange(rows)[:, None] * num_groups
        counts = np.bincount(drawn.ravel(), minlength=drawn.size)
        yield counts.reshape(drawn.shape).astype(np.float64)


def _swaps(num_groups: int, size: int, generator: np.random.Generator) -> Iterator[_Weights]:
    """Yield for each group whether it is exchanged, as 1 or 0, in blocks."""
    if 2**num_groups <= size:
        yield np.array([*product((0.0, 1.0), repeat=num_groups)])
        return
    for rows in _blocks(size, num_groups):
        yield generator.integers(2, size=(rows, num_groups)).astype(np.float64)


def _blocks(size: int, num_groups: int) -> Iterator[int]:
    rows = max(1, _BLOCK // num_groups)
    yield from [rows] * (size // rows)
    if size % rows:
        yield size % rows
