"""The best threshold of a probability, from sums over examples."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np

_MAX_LOG_ODDS = 10
_PER_UNIT = 10

THRESHOLDS = (
    0.0,
    *(
        1 / (1 + math.exp(-step / _PER_UNIT))
        for step in range(-_MAX_LOG_ODDS * _PER_UNIT, _MAX_LOG_ODDS * _PER_UNIT + 1)
    ),
    1.0,
)
"""Thresholds in steps of 0.1 in log-odds, 0.5 among them; see docs/decisions/thresholds.md."""


def threshold_index(probability: float) -> int:
    """Return the index of the lowest of `THRESHOLDS` that a probability does not exceed."""
    return bisect_left(THRESHOLDS, probability)


def best_threshold(floor: Any, gains: Mapping[int, Any]) -> tuple[Any, Any]:
    """Return the best total over all thresholds, and the lowest threshold that has it.

    Args:
        floor: the total if every probability exceeds the threshold.
        gains: what is added to the total from each threshold on, by its index; numbers, or arrays
            for as many results at the same time.
    """
    shape = np.broadcast_shapes(np.shape(floor), *(np.shape(gain) for gain in gains.values()))
    best, threshold = np.broadcast_to(floor, shape).astype(float), np.zeros(shape)
    total = best
    for index in sorted(gains):
        total = total + gains[index]
        is_better = total > best
        best = np.where(is_better, total, best)
        threshold = np.where(is_better, THRESHOLDS[index], threshold)
    return (best, threshold) if shape else (float(best), float(threshold))
