from collections import Counter

import numpy as np
import pytest
from scipy import stats

from elmo_framework.metrics.regression import RegressionScores

METRIC = RegressionScores()


def sums_of(predicted, gold) -> Counter[str]:
    sums: Counter[str] = Counter()
    for pair in zip(predicted, gold, strict=True):
        sums.update(METRIC.count(*pair))
    return sums


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_scores_equal_those_of_scipy(seed, offset):
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 12, 60) / 4 + offset  # with ties
    predicted = np.round(gold + generator.normal(size=60), 1)

    scores = METRIC.score(sums_of(predicted.tolist(), gold.tolist()))

    assert scores == pytest.approx(
        {
            "pearson": stats.pearsonr(predicted, gold)[0],
            "spearman": stats.spearmanr(predicted, gold)[0],
            "mse": ((predicted - gold) ** 2).mean(),
            "mae": np.abs(predicted - gold).mean(),
        },
        rel=1e-7,
    )


@pytest.mark.parametrize(("predicted", "gold"), [([], []), ([1.0], [2.0]), ([0.1] * 3, [1, 2, 3])])
def test_a_correlation_without_variance_is_0(predicted, gold):
    scores = METRIC.score(sums_of(predicted, gold))

    assert scores["pearson"] == scores["spearman"] == 0.0


def test_sums_of_parts_add_up_to_the_whole():
    predicted, gold = [1.0, 2.5, 1.0, 4.0], [1.0, 2.0, 1.0, 5.0]

    parts = sums_of(predicted[:2], gold[:2]) + sums_of(predicted[2:], gold[2:])

    assert METRIC.score(parts) == METRIC.score(sums_of(predicted, gold))


def test_resamples_are_scored_as_arrays():
    generator = np.random.default_rng(0)
    sums = sums_of(
        generator.normal(size=20).round(1).tolist(), generator.integers(5, size=20).tolist()
    )
    weights = generator.integers(0, 3, (4, len(sums))).astype(float)

    arrays = METRIC.score(dict(zip(sums, weights.T, strict=True)))

    for row, own in enumerate(weights.tolist()):
        for name, value in METRIC.score(dict(zip(sums, own, strict=True))).items():
            assert arrays[name][row] == pytest.approx(value)
