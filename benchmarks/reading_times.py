"""How much better reading times are predicted with the surprisal of words than without.

Linear regression by least squares of the mean reading time of a word (ms). The baseline knows its
length in letters, the logarithm of its frequency and their product, and the same of the word
before, since reading slows down one word late (spillover). The other model also knows the
surprisals of both words. Each story is predicted by the model that was fitted to the others, with
the variance of its residuals. The gain is the difference of the two mean log-likelihoods per word
(Goodkind and Bicknell 2018; Wilcox et al. 2020), in nats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NUM_RESAMPLES, _SEED = 2000, 13
_PERCENTILES = (2.5, 97.5)


class ReadWords(NamedTuple):
    """The words of stories in their order; each an array with one value per word.

    Attributes:
        story: a number for each story.
        sentence: a number for each sentence, over all stories.
        length: letters and digits.
        log_frequency: the natural logarithm of its count.
        surprisal: bits.
        time: the mean reading time in milliseconds.
        is_usable: false where a value is missing.
    """

    story: NDArray[np.int64]
    sentence: NDArray[np.int64]
    length: NDArray[np.float64]
    log_frequency: NDArray[np.float64]
    surprisal: NDArray[np.float64]
    time: NDArray[np.float64]
    is_usable: NDArray[np.bool_]


class Gain(NamedTuple):
    """The gain in held-out log-likelihood, nats per word, with its 95 % bootstrap interval."""

    per_word: float
    low: float
    high: float
    num_words: int


def reading_time_gain(words: ReadWords) -> Gain:
    """Return the gain of surprisal; sentences are resampled for the interval.

    Words are left out at both ends of a sentence, and where a value of the word or of the one
    before is missing.

    Raises:
        ValueError: there are fewer than two stories.
    """
    stories = np.unique(words.story)
    if len(stories) < 2:
        raise ValueError("reading times of at least two stories are needed")
    places = _places(words)
    baseline = _columns(places, words.length, words.log_frequency)
    with_surprisal = np.column_stack([baseline, _with_previous(places, words.surprisal)])
    story, time = words.story[places], words.time[places]
    gains = np.zeros(len(places))
    for held_out in stories:
        is_held_out = story == held_out
        gains[is_held_out] = log_likelihood(with_surprisal, time, is_held_out)
        gains[is_held_out] -= log_likelihood(baseline, time, is_held_out)
    low, high = _interval(gains, words.sentence[places])
    return Gain(float(gains.mean()), low, high, len(places))


def log_likelihood(
    columns: NDArray[np.float64], time: NDArray[np.float64], is_held_out: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Fit a regression to the other words; return the log-likelihood of each held-out one."""
    inputs = np.column_stack([np.ones(len(columns)), columns])
    fitted = inputs[~is_held_out]
    weights, *_ = np.linalg.lstsq(fitted, time[~is_held_out], rcond=None)
    variance = np.mean((time[~is_held_out] - fitted @ weights) ** 2)
    residuals = time[is_held_out] - inputs[is_held_out] @ weights
    return -0.5 * (np.log(2 * np.pi * variance) + residuals**2 / variance)


def _places(words: ReadWords) -> NDArray[np.int64]:
    """Return the words inside sentences whose values, and those of the word before, are there."""
    same = words.sentence[1:] == words.sentence[:-1]
    has_previous, has_next = np.append(False, same), np.append(same, False)
    usable_before = np.append(False, words.is_usable[:-1])
    return np.flatnonzero(has_previous & has_next & words.is_usable & usable_before)


def _with_previous(places: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([values[places], values[places - 1]])


def _columns(
    places: NDArray[np.int64], length: NDArray[np.float64], log_frequency: NDArray[np.float64]
) -> NDArray[np.float64]:
    parts = (length, log_frequency, length * log_frequency)
    return np.column_stack([_with_previous(places, values) for values in parts])


def _interval(
    gains: NDArray[np.float64], sentence: Sequence[int] | NDArray[np.int64]
) -> tuple[float, float]:
    _, of_word = np.unique(sentence, return_inverse=True)
    sums = np.bincount(of_word, weights=gains)
    counts = np.bincount(of_word)
    random = np.random.default_rng(_SEED)
    drawn = random.integers(len(sums), size=(_NUM_RESAMPLES, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.percentile(means, _PERCENTILES)
    return float(low), float(high)
