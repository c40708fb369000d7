"""Correlations and errors of predicted numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio

_NO_VARIANCE = 1e-28
"""A variance that is smaller, relative to the mean square, is that of rounding."""


@final
@Metric.register("regression")
class RegressionScores(Metric):
    """The correlations of Pearson and Spearman, and the mean squared and mean absolute error.

    The scores are called `pearson`, `spearman`, `mse` and `mae`. Equal numbers share the mean of
    their ranks. A correlation is 0 if all predictions or all gold numbers are equal.

    Ranks depend on all examples, so that the sums count each pair of a prediction and a gold
    number. All scores of a set of examples follow from these counts, exactly.
    """

    def count(self, prediction: float, gold: float) -> Mapping[str, float]:
        return {json.dumps([prediction, gold]): 1.0}

    def score(self, sums: Mapping[str, Any]) -> dict[str, Any]:
        pairs = np.array([json.loads(pair) for pair in sums]).reshape(-1, 2).T
        counts = np.stack([*sums.values()], axis=-1) if sums else np.zeros(0)
        predicted, gold = pairs
        errors, total = predicted - gold, counts.sum(axis=-1)
        ranks = [_ranks(each, counts) for each in pairs]
        scores = {
            "pearson": _correlation(predicted, gold, counts),
            "spearman": _correlation(ranks[0], ranks[1], counts),
            "mse": ratio(counts @ errors**2, total),
            "mae": ratio(counts @ np.abs(errors), total),
        }
        return scores if counts.ndim > 1 else {k: float(v) for k, v in scores.items()}


def _ranks(values: Any, counts: Any) -> Any:
    """Return the rank of each value, up to a constant: "pairs" or "resamples pairs"."""
    _, distinct = np.unique(values, return_inverse=True)
    order = np.argsort(distinct, kind="stable")
    starts = np.flatnonzero(np.diff(distinct[order], prepend=-1))
    num_each = np.add.reduceat(counts[..., order], starts, axis=-1) if len(starts) else counts
    return (num_each.cumsum(axis=-1) - num_each / 2)[..., distinct]


def _correlation(one: Any, other: Any, counts: Any) -> Any:
    """Return the correlation of two lists of numbers, each pair of which is counted."""
    total = counts.sum(axis=-1, keepdims=True)
    deviations = [
        each - ratio((each * counts).sum(axis=-1, keepdims=True), total) for each in (one, other)
    ]
    covariance = (counts * deviations[0] * deviations[1]).sum(axis=-1)
    variances = [(counts * each**2).sum(axis=-1) for each in deviations]
    floors = [_NO_VARIANCE * (counts * each**2).sum(axis=-1) for each in (one, other)]
    is_constant = (variances[0] <= floors[0]) | (variances[1] <= floors[1])
    scale = np.where(is_constant, 0.0, np.sqrt(variances[0] * variances[1]))
    return ratio(covariance, scale)
