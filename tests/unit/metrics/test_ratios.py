import pytest

from elmo_framework.metrics.ratios import label_counts, label_scores


def test_what_is_labelled_is_counted_by_label_and_is_correct_where_all_of_it_is_the_same():
    predicted = {(0, 1, "A"), (2, 3, "A"), (4, 5, "B")}
    gold = {(0, 1, "A"), (2, 4, "A"), (4, 5, "C")}

    sums = label_counts(predicted, gold)

    of_a = {"correct/A": 1, "predicted/A": 2, "gold/A": 2}
    assert sums == of_a | {"predicted/B": 1, "gold/C": 1}
    assert label_scores(sums)["precision-overall"] == pytest.approx(1 / 3)


def test_scores_pass_over_what_has_no_label_and_overall_what_is_excluded():
    sums = label_counts({("A",), ("V",)}, {("A",)})

    scores = label_scores({**sums, "words": 9}, not_in_overall={"V"})

    assert scores["precision-V"] == 0
    assert scores["precision-overall"] == 1
    assert not any("words" in name for name in scores)
