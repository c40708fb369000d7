"""BLEU from sums over questions."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from elmo_framework.errors import RunError

PAIRS = [
    ("who was the first keeper of the lighthouse ?", "Who was the keeper of the lighthouse ?"),
    ("when ?", "When was it built ?"),
    ("what did the lamp burn until 1904 ?", "What did the lamp burn until 1904 ?"),
]


def sums() -> Counter[str]:
    from plugins.question_generation.bleu import Bleu
    from plugins.question_generation.example import GeneratedQuestion

    total: Counter[str] = Counter()
    for question, reference in PAIRS:
        prediction = GeneratedQuestion(tuple(question.split()), -1.0)
        total.update(Bleu().count(prediction, reference.split()))
    return total


def test_score_of_sums_is_that_of_the_corpus():
    sacrebleu = pytest.importorskip("sacrebleu")
    from plugins.question_generation.bleu import Bleu

    expected = sacrebleu.corpus_bleu(
        [question for question, _ in PAIRS],
        [[reference for _, reference in PAIRS]],
        tokenize="none",
        lowercase=True,
    )

    assert Bleu().score(sums()) == {"bleu": pytest.approx(expected.score / 100)}
    assert 0.3 < expected.score / 100 < 1


def test_unigram_counts_worked_by_hand():
    pytest.importorskip("sacrebleu")

    total = sums()

    # Of 9 words all but "first", both of 2, and all 8 occur in their references of 8, 5 and 8.
    assert (total["correct/1"], total["total/1"]) == (18, 19)
    assert (total["words"], total["reference_words"]) == (19, 21)


def test_no_questions_score_zero():
    from plugins.question_generation.bleu import Bleu

    assert Bleu().score({}) == {"bleu": 0.0}


def test_missing_sacrebleu_is_named_with_its_command(monkeypatch):
    from plugins.question_generation.bleu import Bleu
    from plugins.question_generation.example import GeneratedQuestion

    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)

    with pytest.raises(RunError, match="sacrebleu is not installed; run: pip install sacrebleu"):
        Bleu().count(GeneratedQuestion(("who",), -1.0), ["who"])
