"""The scores of SQuAD 1.1 and 2.0: every case worked by hand from the definition of the scorer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
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


Question: TypeAlias = tuple[Answer, Sequence[str]]


def with_option(span: str, probability: float) -> Answer:
    text = "" if probability > 0.5 else span
    return Answer(text, 0, len(text), probability, span)


def scores_of(questions: Sequence[Question]) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for prediction, gold in questions:
        sums.update(SquadScores().count(prediction, gold))
    return SquadScores().score(sums)


def test_answers_without_probability_add_what_they_added_before():
    counts = SquadScores().count(answer("Denver"), ["Denver"])

    assert counts == {"em": 1.0, "f1": 1.0, "total": 1.0}
    assert set(SquadScores().score(counts)) == {"em", "f1"}


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [
        (with_option("Anna", 0.9), (), (1, 1)),
        (with_option("Anna", 0.1), (), (0, 0)),
        (with_option("Anna", 0.9), ("Anna",), (0, 0)),
        (with_option("Anna Lund", 0.1), ("Anna", "Bo"), (0, pytest.approx(2 / 3))),
        (with_option("the", 0.1), ("a",), (1, 1)),  # answers without a word are left out
        (with_option("the", 0.1), ("a", "Anna"), (0, 0)),
        (with_option("Anna", 0.9), ("the",), (1, 1)),
    ],
)
def test_one_question_of_version_2(prediction, gold, expected):
    scores = scores_of([(prediction, gold)])

    kind, other = ("HasAns", "NoAns") if gold else ("NoAns", "HasAns")
    assert (scores["em"], scores["f1"]) == expected
    assert (scores[f"{kind}_exact"], scores[f"{kind}_f1"]) == expected
    assert scores[f"{other}_exact"] == scores[f"{other}_f1"] == 0


def test_best_thresholds_worked_by_hand():
    questions: list[Question] = [
        (with_option("Anna", 0.2), ("Anna",)),
        (with_option("Bo Ek", 0.3), ("Bo",)),
        (with_option("Carl", 0.4), ()),
        (with_option("Dora", 0.6), ("Dora",)),
        (with_option("Elsa", 0.8), ()),
    ]

    scores = scores_of(questions)

    # Answered up to 0.2: 1 + 2 right; to 0.3: 3, or 3 2/3 by F1; to 0.4: one less; to 0.6: 3.
    assert (scores["em"], scores["f1"]) == (2 / 5, pytest.approx((2 + 2 / 3) / 5))
    assert (scores["HasAns_exact"], scores["NoAns_exact"]) == (1 / 3, 1 / 2)
    assert scores["best_exact"] == 3 / 5
    assert 0.2 <= scores["best_exact_thresh"] < 0.3
    assert scores["best_f1"] == pytest.approx((3 + 2 / 3) / 5)
    assert 0.3 <= scores["best_f1_thresh"] < 0.4 or 0.6 <= scores["best_f1_thresh"] < 0.8


def officially_best(values: Sequence[tuple[float, float, bool]]) -> float:
    """The best score over thresholds at each probability, as the official script defines it."""
    totals = [float(sum(not has_answer for *_, has_answer in values))]
    for threshold, *_ in values:
        totals.append(
            sum(
                value if probability <= threshold and has_answer else 0.0
                for probability, value, has_answer in values
            )
            + sum(
                probability > threshold and not has_answer for probability, _, has_answer in values
            )
        )
    return max(totals) / len(values)


@pytest.mark.parametrize("seed", range(20))
def test_best_scores_equal_all_thresholds_tried_one_by_one(seed):
    generator = random.Random(seed)
    log_odds = generator.sample(range(-40, 40), 12)  # at most one in each step of 0.1
    spans = ["Anna Lund", "Anna", "Bo", "keeper"]
    questions: list[Question] = []
    for each in log_odds:
        gold = ("Anna",) if generator.random() < 0.6 else ()
        probability = 1 / (1 + np.exp(-(each + 0.5) / 10))
        questions.append((with_option(generator.choice(spans), probability), gold))

    scores = scores_of(questions)

    for name, of in (("exact", "em"), ("f1", "f1")):
        values = [
            (
                prediction.no_answer_probability,
                scored_v2(prediction.best_span, gold)[of],
                bool(gold),
            )
            for prediction, gold in questions
        ]
        assert scores[f"best_{name}"] == pytest.approx(officially_best(values))
        assert scores[f"best_{name}"] >= scores[of]
        threshold = scores[f"best_{name}_thresh"]
        at_threshold = [
            (value if has_answer else 0.0) if probability <= threshold else float(not has_answer)
            for probability, value, has_answer in values
        ]
        assert np.mean(at_threshold) == pytest.approx(scores[f"best_{name}"])


def scored_v2(span: str, gold: Sequence[str]) -> dict[str, float]:
    return dict(zip(("em", "f1"), scored(span, *gold), strict=True)) if gold else {"em": 0, "f1": 0}


def test_scores_of_arrays_equal_those_of_numbers():
    questions: list[Question] = [
        (with_option("Anna", 0.2), ("Anna",)),
        (with_option("Carl", 0.4), ()),
        (with_option("Bo Ek", 0.7), ("Bo",)),
    ]
    counts = [SquadScores().count(*each) for each in questions]
    names = {name for each in counts for name in each}
    weights = np.array([[1, 1, 1], [3, 0, 0], [0, 2, 1], [0, 0, 3]])
    sums = {name: weights @ [each.get(name, 0.0) for each in counts] for name in names}

    together = SquadScores().score(sums)

    for row, weight in enumerate(weights):
        resample = [q for q, times in zip(questions, weight, strict=True) for _ in range(times)]
        alone = scores_of(resample)
        assert {name: value[row] for name, value in together.items()} == pytest.approx(alone)
