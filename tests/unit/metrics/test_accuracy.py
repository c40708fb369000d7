from collections import Counter

from elmo_framework.metrics.accuracy import Accuracy


def test_accuracy_is_the_share_of_right_labels():
    metric, sums = Accuracy(), Counter()
    for prediction, gold in [("a", "a"), ("b", "a"), ("c", "c"), ("a", "b")]:
        sums.update(metric.count(prediction, gold))

    assert metric.score(sums) == {"accuracy": 0.5}


def test_accuracy_of_nothing_is_zero():
    assert Accuracy().score({}) == {"accuracy": 0.0}
