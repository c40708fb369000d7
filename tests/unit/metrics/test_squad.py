"""The scores of SQuAD 1.1: every case worked by hand from the definition of the scorer."""

from __future__ import annotations

import pytest

from elmo_framework.metrics.squad import Answer, SquadScores, normalized


def answer(text: str) -> Answer:
    return Answer(text, 0, len(text))


def scored(prediction: str, *gold: str) -> tuple[float, float]:
    metric = SquadScores()
    scores = metric.score(metric.count(answer(prediction), gold))
    return scores["em"], scores["f1"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Broncos.", "broncos"),
        ("a man, a plan", "man plan"),
        ("\tnew\nline ", "new line"),
        ("$1,000", "1000"),
        ("Theatre", "theatre"),  # an article inside a word stays
        ("Anna's banana", "annas banana"),
        ("the-end", "theend"),  # punctuation goes before articles are looked for
        ("well-known", "wellknown"),
        ("a.", ""),
        ("U.S.A.", "usa"),
        ("24\u201310", "24\u201310"),  # an en dash is no ASCII punctuation
        ("\u201cgold\u201d", "\u201cgold\u201d"),
        ("the\u201310", "\u201310"),  # but it ends a word
        ("\u00a0x\u3000y", "x y"),  # every space of Unicode separates words
        ("\u00c9COLE", "\u00e9cole"),
        ("the_end", "theend"),
        ("", ""),
    ],
)
def test_answers_are_normalized_as_by_the_official_scorer(answer, expected):
    assert normalized(answer) == expected


def test_case_punctuation_and_articles_are_ignored():
    assert scored("the Denver Broncos!", "Denver broncos") == (1, 1)


def test_f1_is_the_overlap_of_words():
    # 2 of 3 predicted words, 2 of 4 gold ones: p = 2/3, r = 1/2, f1 = 4/7
    assert scored("big gold cup", "gold cup of 1990") == (0, pytest.approx(4 / 7))


def test_repeated_word_counts_as_often_as_in_both_answers():
    # common: york twice; p = 2/3, r = 2/2
    assert scored("york york york", "York York") == (0, pytest.approx(0.8))


def test_word_order_matters_for_exact_match_only():
    assert scored("Broncos Denver", "Denver Broncos") == (0, 1)


def test_best_gold_answer_counts_for_each_score_separately():
    assert scored("in Santa Clara", "Paris", "Santa Clara", "Santa") == (0, pytest.approx(0.8))
    assert scored("Clara", "Santa Clara", "Clara") == (1, 1)


def test_empty_prediction_has_no_overlap():
    assert scored("", "Denver") == (0, 0)


def test_two_empty_answers_match_without_overlap():
    # Version 1.1 counts words in common before anything else; 2.0 would give 1 for both.
    assert scored("the", "a") == (1, 0)
    assert scored("", "") == (1, 0)


def test_scores_are_means_over_all_questions():
    metric = SquadScores()
    counts = [metric.count(answer(text), ["x"]) for text in ("x", "x y", "z")]
    sums = {name: sum(count[name] for count in counts) for name in counts[0]}

    assert metric.score(sums) == {"em": 1 / 3, "f1": (1 + 2 / 3 + 0) / 3}


def test_scores_without_questions_are_zero():
    assert SquadScores().score({}) == {"em": 0, "f1": 0}
