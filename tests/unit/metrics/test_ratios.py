import math

import pytest

from elmo_framework.metrics.ratios import label_counts, label_scores, perplexity


def test_equal_items_are_counted_as_correct_by_label():
    predicted = {(0, 1, "A"), (2, 3, "A"), (4, 5, "B")}
    gold = {(0, 1, "A"), (2, 4, "A"), (4, 5, "C")}

    sums = label_counts(predicted, gold)

    of_a = {"correct/A": 1, "predicted/A": 2, "gold/A": 2}
    assert sums == of_a | {"predicted/B": 1, "gold/C": 1}
    assert label_scores(sums)["precision-overall"] == pytest.approx(1 / 3)


def test_overall_scores_skip_excluded_labels():
    sums = label_counts({("A",), ("V",)}, {("A",)})

    scores = label_scores({**sums, "words": 9}, not_in_overall={"V"})

    assert scores["precision-V"] == 0
    assert scores["precision-overall"] == 1
    assert not any("words" in name for name in scores)


def test_perplexity_of_uniform_guess_is_vocabulary_size() -> None:
    assert perplexity(math.log(50)) == pytest.approx(50)


def test_perplexity_overflows_to_infinity() -> None:
    assert perplexity(1e4) == math.inf
