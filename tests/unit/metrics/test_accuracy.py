from collections import Counter

from elmo_framework.data.labels import Classification
from elmo_framework.metrics.accuracy import Accuracy, TopAccuracy


def test_accuracy_is_the_share_of_right_labels():
    metric, sums = Accuracy(), Counter()
    for prediction, gold in [("a", "a"), ("b", "a"), ("c", "c"), ("a", "b")]:
        sums.update(metric.count(prediction, gold))

    assert metric.score(sums) == {"accuracy": 0.5}


def test_accuracy_of_nothing_is_zero():
    assert Accuracy().score({}) == {"accuracy": 0.0}


def test_a_label_among_the_most_probable_counts():
    metric, sums = TopAccuracy(2), Counter()
    prediction = Classification("b", {"a": 0.3, "b": 0.5, "c": 0.2})
    for gold in ("b", "a", "c", "unseen"):
        sums.update(metric.count(prediction, gold))

    assert metric.score(sums) == {"accuracy2": 0.5}


def test_of_two_labels_both_are_among_the_three_most_probable():
    counted = TopAccuracy(3).count(Classification("a", {"a": 0.9, "b": 0.1}), "b")

    assert TopAccuracy(3).score(counted) == {"accuracy3": 1.0}
    assert TopAccuracy(3).score({}) == {"accuracy3": 0.0}
