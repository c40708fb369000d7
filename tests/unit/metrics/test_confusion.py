import random
from collections import Counter

import numpy as np
import pytest

from elmo_framework.data.labels import Classification
from elmo_framework.metrics.confusion import Confusion, MatthewsCorrelation
from elmo_framework.metrics.metric import Metric


def sums_of(metric: Metric, *pairs: tuple[str, str]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for prediction, gold in pairs:
        sums.update(metric.count(Classification(prediction, {}), gold))
    return sums


def mcc(*pairs: tuple[str, str]) -> float:
    return MatthewsCorrelation().score(sums_of(MatthewsCorrelation(), *pairs))["mcc"]


def covariance(one: np.ndarray, other: np.ndarray) -> float:
    """The covariance of Gorodkin (2004), of two matrices of one row per example."""
    return float(((one - one.mean(axis=0)) * (other - other.mean(axis=0))).sum())


def correlation_of_one_hot_vectors(pairs: list[tuple[str, str]]) -> float:
    """R_K by its definition: the correlation of the one-hot vectors of the labels."""
    classes = sorted({label for pair in pairs for label in pair})
    predicted, gold = (
        np.array([[float(pair[side] == label) for label in classes] for pair in pairs])
        for side in (0, 1)
    )
    scale = np.sqrt(covariance(predicted, predicted) * covariance(gold, gold))
    return covariance(predicted, gold) / scale if scale else 0.0


def test_table_has_gold_rows_and_predicted_columns():
    sums = sums_of(Confusion(), ("a", "a"), ("a", "a"), ("b", "a"), ("c", "b"))

    assert Confusion().table(sums) == {
        "a": {"a": 2, "b": 1, "c": 0},
        "b": {"a": 0, "b": 0, "c": 1},
        "c": {"a": 0, "b": 0, "c": 0},
    }


def test_table_of_a_tagger_counts_words():
    sums = Confusion().count(("O", "B-PER", "O"), ("O", "O", "O"))

    assert Confusion().table(sums)["O"] == {"B-PER": 1, "O": 2}


def test_table_has_no_scores():
    assert Confusion().score(sums_of(Confusion(), ("a", "a"))) == {}


@pytest.mark.parametrize("metric", [Confusion(), MatthewsCorrelation()])
def test_sums_of_parts_add_up_to_the_whole(metric):
    pairs = [("a", "a"), ("b", "a"), ("a", "a"), ("b", "b")]

    assert sums_of(metric, *pairs[:2]) + sums_of(metric, *pairs[2:]) == sums_of(metric, *pairs)


def test_a_label_may_have_any_character():
    sums = sums_of(Confusion(), ('a/"b"\t', 'a/"b"\t'))

    assert Confusion().table(sums) == {'a/"b"\t': {'a/"b"\t': 1}}
    assert mcc(("a/b", "a/b"), ("c", "c")) == 1.0


@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_mcc_is_the_correlation_of_one_hot_labels(num_classes, seed):
    generator = random.Random(seed)
    classes = [f"class{number}" for number in range(num_classes)]
    pairs = [(generator.choice(classes), generator.choice(classes)) for _ in range(50)]
    pairs += [(label, label) for label in generator.choices(classes, k=20)]

    assert mcc(*pairs) == pytest.approx(correlation_of_one_hot_vectors(pairs), abs=1e-12)


def test_mcc_of_two_classes_is_the_coefficient_of_matthews():
    true, false, missed, rejected = 6, 1, 2, 3
    pairs = [("+", "+")] * true + [("+", "-")] * false
    pairs += [("-", "+")] * missed + [("-", "-")] * rejected

    product = (true + false) * (true + missed) * (rejected + false) * (rejected + missed)
    expected = (true * rejected - false * missed) / product**0.5
    assert mcc(*pairs) == pytest.approx(expected, abs=1e-15)


def test_mcc_ranges_from_minus_one_to_one():
    assert mcc(("a", "a"), ("b", "b"), ("c", "c")) == 1.0
    assert mcc(("a", "b"), ("b", "a")) == -1.0


@pytest.mark.parametrize("pairs", [[], [("a", "a")], [("a", "a"), ("a", "b")]])
def test_mcc_without_variance_is_zero(pairs):
    assert mcc(*pairs) == 0.0


def test_mcc_of_a_tagger_counts_words():
    counts = MatthewsCorrelation().count(("A", "B", "A"), ("A", "B", "B"))

    assert counts == sums_of(MatthewsCorrelation(), ("A", "A"), ("B", "B"), ("A", "B"))


def test_mcc_of_a_sentence_without_words_counts_nothing():
    assert MatthewsCorrelation().count((), ()) == {}
