"""Thresholds of probabilities, and the best of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from elmo_framework.metrics.thresholds import THRESHOLDS, best_threshold, threshold_index

ABOVE_A_HALF = math.nextafter(0.5, 1)


def test_thresholds_rise_from_0_to_1_through_a_half():
    assert (THRESHOLDS[0], THRESHOLDS[-1], len(THRESHOLDS)) == (0.0, 1.0, 203)
    assert 0.5 in THRESHOLDS
    assert all(low < high for low, high in pairwise(THRESHOLDS))


@pytest.mark.parametrize("probability", [0.0, 1e-9, 0.2, 0.5, ABOVE_A_HALF, 0.999999, 1.0])
def test_index_is_that_of_the_lowest_threshold_not_exceeded(probability):
    index = threshold_index(probability)

    assert probability <= THRESHOLDS[index]
    assert index == 0 or probability > THRESHOLDS[index - 1]


def test_lowest_of_equal_thresholds_is_best():
    gains = {3: 1.0, 5: -1.0, 9: 1.0}

    assert best_threshold(2.0, gains) == (3.0, THRESHOLDS[3])


def test_nothing_is_gained_by_wrong_answers():
    assert best_threshold(2.0, {3: -1.0}) == (2.0, 0.0)
    assert best_threshold(0.0, {}) == (0.0, 0.0)


def test_arrays_are_many_results():
    best, threshold = best_threshold(
        np.array([1.0, 0.0]), {2: np.array([-1.0, 0.5]), 7: np.array([3.0, -0.5])}
    )

    assert best.tolist() == [3.0, 0.5]
    assert threshold.tolist() == [THRESHOLDS[7], THRESHOLDS[2]]
