"""Compare two sets of runs on one file: scores, intervals, p-values, and which examples changed."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from elmo_framework.analysis.scored_run import (
    EvaluationSplit,
    ScoredRun,
    require_comparable,
    scored_runs,
)
from elmo_framework.analysis.statistics import (
    NUM_RESAMPLES,
    Estimate,
    Resamples,
    distributions,
    error_reduction,
    holm,
    scores_of_rows,
)
from elmo_framework.console import plural
from elmo_framework.errors import RunError, allowed
from elmo_framework.experiment.config_changes import changes
from elmo_framework.experiment.run_directory import require_distinct
from elmo_framework.experiment.terms import ExampleTerms
from elmo_framework.training.evaluator import sign_of

_SHOWN_KEYS = 3
_log = logging.getLogger(__name__)

_NUM_LENGTHS = 4
_EQUAL = 1e-12


@final
@dataclass(frozen=True)
class MetricComparison:
    """The difference of two sets of runs in one score.

    Attributes:
        metric: the score.
        runs: the score of each run.
        others: the score of each of the other runs.
        difference: of the means, with the interval and the p-value over examples and seeds.
        p_holm: that p-value, adjusted for all compared metrics; None without it.
        p_randomization: by approximate randomization over examples, for these runs; None where a
            score is not a number.
        error_reduction: the fraction of the error of the others that the runs avoid, where the
            error is 1 - score, or the score itself if smaller is better; None if the others have
            none, if it is unknown what is better, or if scores of which larger ones are better
            are not in [0, 1].
    """

    metric: str
    runs: Sequence[float]
    others: Sequence[float]
    difference: Estimate
    p_holm: float | None
    p_randomization: float | None
    error_reduction: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the difference, within the limits of scores in [0, 1]."""
        scores = *self.runs, *self.others
        if sign_of(self.metric) > 0 and all(0 <= score <= 1 for score in scores):
            return self.difference.interval_of_ratio(is_difference=True)
        return self.difference.interval


@final
@dataclass(frozen=True)
class Change:
    """An example that two sets of runs predict differently.

    Attributes:
        number: of the example in the file, from 1.
        effect: how much the score of the file changes if only this example is predicted by the
            runs, and all others by the other runs.
        length: number of words.
        classes: its gold labels.
    """

    number: int
    effect: float
    length: int
    classes: Sequence[str]


@final
@dataclass(frozen=True)
class ChangeCounts:
    """How many examples of a class, or of a range of lengths, are better, worse and equal."""

    name: str
    better: int
    worse: int
    equal: int


@final
@dataclass(frozen=True)
class Comparison:
    """Two sets of runs, compared on one file.

    Attributes:
        runs: the compared runs.
        others: those that they are compared with.
        seeds: the seeds by which the runs are paired; None if the two sides have other seeds, and
            are resampled independently.
        num_examples: number of examples.
        num_groups: number of groups of examples that are resampled as a whole.
        metrics: a comparison for each metric.
        changes: the examples whose prediction changes the first metric, in the order of the file.
        by_class: counts of changes for each gold label, in the score of the label if it has one.
        by_length: counts of changes for ranges of the number of words.
    """

    runs: Sequence[ScoredRun]
    others: Sequence[ScoredRun]
    seeds: Sequence[int] | None
    num_examples: int
    num_groups: int
    metrics: Sequence[MetricComparison]
    changes: Sequence[Change]
    by_class: Sequence[ChangeCounts]
    by_length: Sequence[ChangeCounts]


def compare(
    runs: Sequence[Path | str],
    others: Sequence[Path | str],
    *,
    file: Path | str | None = None,
    split: EvaluationSplit = "validation",
    metrics: Sequence[str] = (),
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
    device: str = "auto",
    packages: Sequence[str] = (),
    bilms: Sequence[Path | str] = (),
) -> Comparison:
    """Compare runs with others on one file, as `elmo compare` does.

    Args:
        runs: the folders of runs that differ in their seeds only, or their records in a study.
        others: the same for the runs to compare with.
        file: to score on; by default the data of the runs' configs.
        split: which of these data: `validation` or `test`.
        metrics: scores, or patterns such as `f1-measure-*`; by default the score that selected the
            weights of the runs.
        num_resamples: number of resamples.
        seed: of the resamples.
        device: `auto`, `cpu` or `cuda`.
        packages: plugins to import in addition to those of the runs.
        bilms: where the biLMs of the runs are, if they were moved.

    Raises:
        RunError: unknown metric, a run is listed twice, or the extra `statistics` is not
            installed; or as of `scored_runs` and `require_comparable`.
        DataError: as of `scored_runs`.
    """
    distributions()
    paths = [Path(path) for path in (*runs, *others)]
    require_distinct(paths[: len(runs)])
    require_distinct(paths[len(runs) :])
    scored = scored_runs(
        paths,
        file=None if file is None else Path(file),
        split=split,
        device=device,
        packages=packages,
        bilms=bilms,
    )
    return compare_scored(
        scored[: len(runs)],
        scored[len(runs) :],
        metrics=metrics,
        num_resamples=num_resamples,
        seed=seed,
    )


def compare_scored(
    runs: Sequence[ScoredRun],
    others: Sequence[ScoredRun],
    *,
    metrics: Sequence[str] = (),
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare runs that have been scored, with the arguments and errors of `compare`."""
    require_comparable([*runs, *others])
    for side in (runs, others):
        if keys := _differing_keys(side):
            listed = ", ".join(keys[:_SHOWN_KEYS])
            _log.warning("runs of one side differ in more than their seeds: %s", listed)
    runs, others, seeds = _paired(runs, others)
    selected = _select_metrics([*runs, *others], metrics)
    compared = _compared(runs, others, selected, seeds is not None, num_resamples, seed)
    effects = _Effects(runs, others, selected[0])
    return Comparison(
        runs,
        others,
        seeds,
        len(runs[0].terms.groups),
        runs[0].terms.num_groups,
        compared,
        effects.changes(),
        effects.by_class(),
        effects.by_length(),
    )


def _differing_keys(runs: Sequence[ScoredRun]) -> list[str]:
    """List the keys in which runs differ, but for seeds, moved files and values that one lacks."""
    return sorted(
        {
            path
            for run in runs[1:]
            for path, one, other in changes(runs[0].config, run.config)
            if path != "random_seed" and not (_is_added(one, other) or _is_moved(one, other))
        }
    )


def _is_added(one: object, other: object) -> bool:
    """Return whether one config lacks a value, such as that of a later version; no component."""
    return None in (one, other) and not isinstance(one or other, dict)


def _is_moved(one: object, other: object) -> bool:
    return isinstance(one, str) and isinstance(other, str) and Path(one).name == Path(other).name


def _paired(
    runs: Sequence[ScoredRun], others: Sequence[ScoredRun]
) -> tuple[Sequence[ScoredRun], Sequence[ScoredRun], Sequence[int] | None]:
    """Return both sides in the order of their seeds, and the seeds if both have the same."""
    sides = [sorted(side, key=lambda run: run.seed) for side in (runs, others)]
    seeds, seeds_of_others = ([run.seed for run in side] for side in sides)
    if seeds != seeds_of_others or len({*seeds}) < len(seeds):
        return runs, others, None
    return sides[0], sides[1], seeds


def _select_metrics(runs: Sequence[ScoredRun], patterns: Sequence[str]) -> list[str]:
    names = [run.score_function()(run.terms.sums()).keys() for run in runs]
    common = [name for name in names[0] if all(name in each for each in names)]
    requested = patterns or [run.metric[1:] for run in runs]
    selected = []
    for pattern in dict.fromkeys(requested):
        matching = [name for name in common if fnmatchcase(name, pattern)]
        if not matching:
            raise RunError(f"unknown metric {pattern!r} for these runs; {allowed(pattern, common)}")
        selected += matching
    return list(dict.fromkeys(selected))


def _compared(
    runs: Sequence[ScoredRun],
    others: Sequence[ScoredRun],
    metrics: Sequence[str],
    is_paired: bool,
    num_resamples: int,
    seed: int,
) -> list[MetricComparison]:
    all_terms = [run.terms for run in (*runs, *others)]
    resamples = Resamples(
        all_terms, runs[0].score_function(), metrics, num_resamples=num_resamples, seed=seed
    )
    sides = range(len(runs)), range(len(runs), len(all_terms))
    differences = [resamples.difference(name, *sides, is_paired=is_paired) for name in metrics]
    randomization = resamples.randomization(*sides, is_paired=is_paired)
    p_values = [each.p for each in differences if each.p is not None]
    adjusted = iter(holm(p_values))
    compared = []
    for name, difference in zip(metrics, differences, strict=True):
        observed, observed_others = (resamples.observed[name][[*side]] for side in sides)
        compared.append(
            MetricComparison(
                name,
                observed.tolist(),
                observed_others.tolist(),
                difference,
                None if difference.p is None else next(adjusted),
                randomization[name],
                error_reduction(
                    float(observed.mean()), float(observed_others.mean()), sign=sign_of(name)
                ),
            )
        )
    return compared


class _Effects:
    """What each example changes in the score of a file when other runs predict it."""

    def __init__(self, runs: Sequence[ScoredRun], others: Sequence[ScoredRun], metric: str) -> None:
        self._terms, self._score, self._metric = runs[0].terms, runs[0].score_function(), metric
        self._names = sorted({name for run in (*runs, *others) for name in run.terms.names})
        before = _mean_values(others, self._names)
        self._rows = before.sum(axis=0) + _mean_values(runs, self._names) - before
        self._whole = before.sum(axis=0, keepdims=True)
        self._scores = self._score(dict(zip(self._names, self._whole[0], strict=True)))
        self._effects = self._of(metric)
        self._classes = _classes(runs[0].terms)

    def changes(self) -> list[Change]:
        return [
            Change(
                int(row) + 1,
                float(self._effects[row]),
                int(self._terms.lengths[row]),
                [label for label, is_in in self._classes.items() if is_in[row]],
            )
            for row in np.flatnonzero(np.abs(self._effects) > _EQUAL)
        ]

    def by_class(self) -> list[ChangeCounts]:
        counts = []
        for label, is_in in self._classes.items():
            own = self._metric.removesuffix("overall") + label
            is_own = self._metric.endswith("-overall") and own in self._scores
            counts.append(self._counts(label, (self._of(own) if is_own else self._effects)[is_in]))
        return counts

    def by_length(self) -> list[ChangeCounts]:
        lengths = self._terms.lengths
        quantiles = np.quantile(lengths, np.arange(1, _NUM_LENGTHS) / _NUM_LENGTHS)
        number = np.searchsorted(np.unique(quantiles), lengths)
        counts = []
        for each in np.unique(number):
            inside = lengths[number == each]
            shortest, longest = int(inside.min()), int(inside.max())
            name = plural(longest, "word")
            name = name if shortest == longest else f"{shortest:,} to {name}"
            counts.append(self._counts(name, self._effects[number == each]))
        return counts

    def _of(self, metric: str) -> Float[np.ndarray, " examples"]:
        score = self._score
        (changed,) = scores_of_rows(score, self._names, self._rows, [metric])
        ((before,),) = scores_of_rows(score, self._names, self._whole, [metric])
        return np.asarray(changed - before)

    def _counts(self, name: str, effects: Float[np.ndarray, " examples"]) -> ChangeCounts:
        gains = effects * (sign_of(self._metric) or 1)
        better, worse = int((gains > _EQUAL).sum()), int((gains < -_EQUAL).sum())
        return ChangeCounts(name, better, worse, len(gains) - better - worse)


def _mean_values(
    runs: Sequence[ScoredRun], names: Sequence[str]
) -> Float[np.ndarray, "examples terms"]:
    total = np.zeros((len(runs[0].terms.groups), len(names)))
    for run in runs:
        total[:, [names.index(name) for name in run.terms.names]] += run.terms.values
    return total / len(runs)


def _classes(terms: ExampleTerms) -> dict[str, Bool[np.ndarray, " examples"]]:
    """Return which examples have each gold label, from `METRIC/gold/LABEL` and confusions."""
    classes: dict[str, Bool[np.ndarray, " examples"]] = {}
    for column, name in enumerate(terms.names):
        metric, _, term = name.partition("/")
        if term.startswith("gold/"):
            label = term.removeprefix("gold/")
        elif metric == "confusion":
            label = json.loads(term)[0]
        else:
            continue
        is_in = terms.values[:, column] > 0
        classes[label] = classes.get(label, False) | is_in
    return dict(sorted(classes.items()))
