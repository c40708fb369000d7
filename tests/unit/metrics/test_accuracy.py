from collections import Counter

import pytest

from elmo_framework.data.labels import Classification
from elmo_framework.metrics.accuracy import Accuracy, TopAccuracy


def test_accuracy_is_the_fraction_of_correct_labels():
    metric, sums = Accuracy(), Counter()
    for prediction, gold in [("a", "a"), ("b", "a"), ("c", "c"), ("a", "b")]:
        sums.update(metric.count(prediction, gold))

    assert metric.score(sums) == {"accuracy": 0.5}


def test_accuracy_reads_the_label_of_a_classification():
    counts = Accuracy().count(Classification("a", {"a": 0.4, "b": 0.6}), "a")

    assert Accuracy().score(counts) == {"accuracy": 1.0}


def test_accuracy_of_a_tagger_counts_words():
    counts = Accuracy().count(("O", "B-PER", "O", "O"), ("O", "O", "O", "O"))

    assert Accuracy().score(counts) == {"accuracy": 0.75}


def test_labels_of_another_number_of_words_are_refused():
    with pytest.raises(ValueError, match="zip"):
        Accuracy().count(("O", "O"), ("O",))


def test_accuracy_of_nothing_is_zero():
    assert Accuracy().score({}) == {"accuracy": 0.0}


def test_a_label_among_the_most_probable_counts():
    metric, sums = TopAccuracy(2), Counter()
    prediction = Classification("b", {"a": 0.3, "b": 0.5, "c": 0.2})
    for gold in ("b", "a", "c", "unseen"):
        sums.update(metric.count(prediction, gold))

    assert metric.score(sums) == {"accuracy2": 0.5}


def test_both_of_two_labels_are_among_the_top_three():
    counts = TopAccuracy(3).count(Classification("a", {"a": 0.9, "b": 0.1}), "b")

    assert TopAccuracy(3).score(counts) == {"accuracy3": 1.0}
    assert TopAccuracy(3).score({}) == {"accuracy3": 0.0}
