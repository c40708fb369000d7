from __future__ import annotations

import math
from collections import Counter

import pytest

from elmo_framework.metrics.perplexity import Perplexity, perplexity


def test_it_is_the_inverse_geometric_mean_of_probabilities_however_they_are_batched() -> None:
    probabilities = [0.5, 0.1, 0.25, 0.9, 0.01]
    metric, total = Perplexity(), Counter[str]()
    for batch in (probabilities[:1], probabilities[1:4], probabilities[4:]):
        total.update(metric.count(-sum(map(math.log, batch)), len(batch)))
    expected = math.prod(probabilities) ** (-1 / len(probabilities))
    assert metric.score(total) == pytest.approx(
        {"loss": math.log(expected), "perplexity": expected}
    )


def test_a_uniform_guess_has_the_size_of_the_vocabulary() -> None:
    metric = Perplexity()
    scores = metric.score(metric.count(7 * math.log(50), 7))
    assert scores["perplexity"] == pytest.approx(50)


def test_with_nothing_counted_the_scores_are_zero() -> None:
    assert Perplexity().score({}) == {"loss": 0.0, "perplexity": 0.0}


def test_a_loss_too_large_for_a_float_gives_infinity() -> None:
    assert perplexity(1e4) == math.inf
