"""Calibration: agreement of probabilities with accuracies; temperature and threshold by a fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

NUM_BINS = 15
"""As of Guo et al. (2017)."""

_HOTTEST, _NUM_HALVINGS = 20.0, 40


@dataclass(frozen=True)
class Bin:
    """The items whose confidence is in one interval.

    Attributes:
        count: number of items.
        confidence: the mean probability of their most probable label.
        accuracy: the rate of items whose most probable label is right.
    """

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """How far the probabilities of labels agree with the gold labels.

    Attributes:
        expected_calibration_error: the mean over the items of |accuracy - confidence| of their bin
            (Guo et al. 2017).
        negative_log_likelihood: the mean of -log p(gold label).
        brier_score: the mean squared distance of the probabilities to those of the gold label, 1,
            and of all others, 0; between 0 and 2.
        bins: of equal width, from 0 to 1: number b of B has confidences in (b / B, (b + 1) / B].
    """

    expected_calibration_error: float
    negative_log_likelihood: float
    brier_score: float
    bins: tuple[Bin, ...]


def reliability(
    scores: Float[np.ndarray, "items labels"],
    gold: Int[np.ndarray, " items"],
    *,
    num_bins: int = NUM_BINS,
) -> Reliability:
    """Compare the probabilities softmax(scores) of one or more items with labels."""
    logs = _log_softmax(scores)
    probabilities, rows = np.exp(logs), np.arange(len(gold))
    confidence, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == gold
    numbers = np.clip(np.ceil(confidence * num_bins).astype(int) - 1, 0, num_bins - 1)
    bins = tuple(_bin(confidence[numbers == b], is_right[numbers == b]) for b in range(num_bins))
    gaps = sum(each.count * abs(each.accuracy - each.confidence) for each in bins)
    targets = np.zeros_like(probabilities)
    targets[rows, gold] = 1.0
    return Reliability(
        gaps / len(gold),
        float(-logs[rows, gold].mean()),
        float(np.square(probabilities - targets).sum(axis=1).mean()),
        bins,
    )


def _bin(confidence: Float[np.ndarray, " items"], is_right: np.ndarray) -> Bin:
    if not len(confidence):
        return Bin(0, 0.0, 0.0)
    return Bin(len(confidence), float(confidence.mean()), float(is_right.mean()))


class ScoredLabels(ABC):
    """The gold labels of some items, and the scores of all labels at any temperature.

    Attributes:
        item: the noun for what has a label: `example`, `word` or `decision`.
    """

    item: str

    @property
    @abstractmethod
    def gold(self) -> Int[np.ndarray, " items"]:
        """The numbers of the gold labels."""

    @abstractmethod
    def scores(self, temperature: float) -> Float[np.ndarray, "items labels"]:
        """Return scores whose softmax is the probability of each label."""

    @abstractmethod
    def slope(self, temperature: float) -> float:
        """Return the slope of the negative log-likelihood along the inverse of the temperature."""


@dataclass(frozen=True)
class ScoredItems(ScoredLabels):
    """Items whose labels are independent: the temperature divides their scores, `logits`."""

    logits: Float[np.ndarray, "items labels"]
    labels: Int[np.ndarray, " items"]
    item: str = "example"

    @property
    def gold(self) -> Int[np.ndarray, " items"]:
        return self.labels

    def scores(self, temperature: float) -> Float[np.ndarray, "items labels"]:
        return self.logits / temperature

    def slope(self, temperature: float) -> float:
        expected = (np.exp(_log_softmax(self.scores(temperature))) * self.logits).sum()
        return float(expected - self.logits[np.arange(len(self.gold)), self.gold].sum())


def fit_temperature(slope: Callable[[float], float]) -> float:
    """Return the temperature with the smallest negative log-likelihood of the gold labels.

    It is convex in the inverse of the temperature, so there is one minimum: in [1/20, 20].

    Args:
        slope: of the negative log-likelihood, along the inverse, at a temperature.
    """
    low, high = 1 / _HOTTEST, _HOTTEST
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        if slope(1 / middle) > 0:
            high = middle
        else:
            low = middle
    return 2 / (low + high)


def fit_threshold(
    probabilities: Float[np.ndarray, " items"], gold: Int[np.ndarray, " items"]
) -> float:
    """Return the threshold whose labels have the best micro-averaged F1.

    It is halfway between the least probable predicted label and the most probable other one. Of
    several best thresholds it is the highest. All thresholds between two probabilities are tried.

    Args:
        probabilities: of one label of one example each.
        gold: 1 for the labels that apply, and 0 for others.

    Raises:
        ValueError: no label applies.
    """
    num_gold = gold.sum()
    if not num_gold:
        raise ValueError("no label applies to any example")
    order = np.argsort(-probabilities, kind="stable")
    ordered, right = probabilities[order], np.cumsum(gold[order])
    f1 = 2 * right / (np.arange(1, len(gold) + 1) + num_gold)
    # Equal probabilities are above a threshold together.
    is_last = np.append(ordered[1:] < ordered[:-1], True)
    last = int(np.where(is_last, f1, -1.0).argmax())
    below = ordered[last + 1] if last + 1 < len(ordered) else 0.0
    return float(ordered[last] + below) / 2


def _log_softmax(scores: Float[np.ndarray, "items labels"]) -> Float[np.ndarray, "items labels"]:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs
