import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from elmo_framework.metrics.calibration import (
    Bin,
    ScoredItems,
    fit_temperature,
    fit_threshold,
    reliability,
)


def test_the_calibration_error_of_a_worked_example():
    """Confidences 0.9 (right), 0.7 (wrong), 0.6 (right) and 0.5, at the end of its bin (right)."""
    probabilities = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    result = reliability(np.log(probabilities), np.array([0, 1, 1, 0]), num_bins=4)

    assert [each.count for each in result.bins] == [0, 1, 2, 1]
    assert result.bins[0] == Bin(0, 0.0, 0.0)
    assert result.bins[2].confidence == pytest.approx(0.65)
    assert result.bins[2].accuracy == 0.5
    # (1 * |1 - 0.5| + 2 * |0.5 - 0.65| + 1 * |1 - 0.9|) / 4
    assert result.expected_calibration_error == pytest.approx(0.225)
    expected = -(math.log(0.9) + math.log(0.3) + math.log(0.6) + math.log(0.5)) / 4
    assert result.negative_log_likelihood == pytest.approx(expected)
    # 2 * 0.1^2, 2 * 0.7^2, 2 * 0.4^2, 2 * 0.5^2
    assert result.brier_score == pytest.approx((0.02 + 0.98 + 0.32 + 0.5) / 4)


def test_a_certain_prediction_is_in_the_last_bin():
    result = reliability(np.array([[1000.0, 0.0]]), np.array([0]))
    assert result.bins[-1] == Bin(1, 1.0, 1.0)
    assert result.expected_calibration_error == 0.0


def test_the_temperature_is_the_best_of_a_grid():
    generator = np.random.default_rng(5)
    scores = generator.normal(size=(300, 4)) * 3
    gold = np.array([generator.choice(4, p=p) for p in _softmax(scores / 2.3)])

    items = ScoredItems(scores, gold)
    temperature = fit_temperature(items.slope)
    losses = {
        t: reliability(items.scores(t), gold).negative_log_likelihood
        for t in (temperature, *np.arange(1.8, 3.0, 0.02))
    }

    assert min(losses, key=lambda t: losses[t]) == temperature
    assert temperature == pytest.approx(2.3, abs=0.3)


def test_the_threshold_has_the_best_f1_of_all():
    generator = np.random.default_rng(7)
    probabilities = generator.random(200).round(2)  # with ties
    gold = (generator.random(200) < probabilities**2).astype(int)

    threshold = fit_threshold(probabilities, gold)
    f1 = {
        t: f1_score(gold, probabilities > t, zero_division=0.0)
        for t in (threshold, *np.arange(0.0, 1.0, 0.005))
    }
    assert f1[threshold] == max(f1.values())
    assert threshold != 0.5


def test_a_threshold_is_halfway_between_two_probabilities():
    assert fit_threshold(np.array([0.2, 0.9, 0.6]), np.array([0, 1, 1])) == pytest.approx(0.4)
    assert fit_threshold(np.array([0.4, 0.4]), np.array([1, 0])) == pytest.approx(0.2)
    with pytest.raises(ValueError, match="no label applies"):
        fit_threshold(np.array([0.4]), np.array([0]))


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores)
    return exponents / exponents.sum(axis=1, keepdims=True)
