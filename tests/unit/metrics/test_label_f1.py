import random
from collections import Counter

import numpy as np
import pytest

from elmo_framework.data.labels import Classification, LabelSet
from elmo_framework.metrics.label_f1 import ExactMatch, LabelF1
from elmo_framework.metrics.metric import is_of_one_type

LABELS = ("a", "b/c", "macro", "d")


def pairs_of(seed: int) -> list[tuple[set[str], set[str]]]:
    """Predicted and gold labels of 40 examples; 'd' does not occur."""
    dice = random.Random(seed)
    return [
        tuple({*dice.choices(LABELS[:3], k=dice.randint(0, 3))} for _ in "pg") for _ in range(40)
    ]


def sums_of(pairs) -> Counter[str]:
    sums: Counter[str] = Counter()
    for predicted, gold in pairs:
        sums.update(LabelF1().count(LabelSet(tuple(predicted), {}), tuple(gold)))
    return sums


def by_brute_force(pairs) -> dict[str, tuple[float, int]]:
    """F1 and support of each label, and the averages, from one matrix per side."""
    sides = (np.array([[k in pair[side] for k in LABELS[:3]] for pair in pairs]) for side in (0, 1))
    predicted, gold = sides
    correct, total = (predicted & gold).sum(0), predicted.sum(0) + gold.sum(0)
    f1, support = 2 * correct / total, gold.sum(0)
    return {
        "a": (f1[0], support[0]),
        "b/c": (f1[1], support[1]),
        "micro": (2 * correct.sum() / total.sum(), support.sum()),
        "weighted": ((f1 * support).sum() / support.sum(), support.sum()),
        "macro": (f1.mean(), support.sum()),
    }


@pytest.mark.parametrize("seed", range(3))
def test_scores_and_averages_of_labels(seed):
    pairs = pairs_of(seed)

    scores, table = LabelF1().score(sums_of(pairs)), LabelF1().table(sums_of(pairs))

    for label, (f1, support) in by_brute_force(pairs).items():
        assert scores[f"f1-measure-{label}"] == pytest.approx(f1)
        assert table[label]["f1-measure"] == pytest.approx(f1)
        assert table[label]["support"] == support


def test_scores_of_resamples_are_computed_as_arrays():
    parts = [sums_of(pairs_of(seed)[:10]) for seed in range(3)]
    parts.append(Counter({"gold/d": 2}))
    names = {name for part in parts for name in part}

    arrays = LabelF1().score({name: np.array([p[name] * 1.0 for p in parts]) for name in names})

    for row, part in enumerate(parts):
        for name, value in LabelF1().score({name: part[name] for name in names}).items():
            assert np.broadcast_to(arrays[name], len(parts))[row] == pytest.approx(value), name


def test_micro_of_single_labels_is_the_accuracy():
    pairs = [("a", "a"), ("b", "a"), ("b", "b"), ("c", "b")]
    sums: Counter[str] = Counter()
    for predicted, gold in pairs:
        sums.update(LabelF1().count(Classification(predicted, {}), gold))

    assert LabelF1().score(sums)["f1-measure-micro"] == 0.5
    assert LabelF1().score(sums)["f1-measure-macro"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)


def test_a_tagger_counts_words():
    assert LabelF1().count(("N", "V"), ("N", "N")) == LabelF1().count(("V", "N"), ("N", "N"))


def test_scores_of_one_label_are_recognized_by_the_averages():
    names = LabelF1().score({})

    assert names.keys() == {f"f1-measure-{each}" for each in ("micro", "macro", "weighted")}
    assert is_of_one_type("precision-a", names)
    assert not is_of_one_type("f1-measure-macro", names)


def test_exact_match_needs_all_labels():
    counts = [ExactMatch().count(LabelSet(("a", "b"), {}), gold) for gold in (("b", "a"), ("a",))]

    assert [each["correct"] for each in counts] == [True, False]
