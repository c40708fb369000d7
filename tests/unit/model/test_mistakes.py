"""Mistakes of predictions in their texts."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import pytest

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.labels import Classification
from elmo_framework.data.tokenizer import build_tokenizer
from elmo_framework.metrics.squad import Answer
from elmo_framework.metrics.srl import Proposition
from elmo_framework.model.mistakes import span_pieces
from elmo_framework.tasks.entailment.task import EntailmentTask, SentencePair
from elmo_framework.tasks.question_answering.example import PassageQuestion, TokenizedText
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.task import SrlTask
from elmo_framework.tasks.tagging.task import TaggedSentence, TaggingTask


def test_tags_are_marked_as_missed_extra_wrong_and_right() -> None:
    gold = TaggedSentence(tuple("abcdef"), ("B-X", "I-X", "O", "B-Y", "B-Z", "O"))
    mistake = TaggingTask().mistake(("B-X", "I-X", "B-X", "O", "B-X", "O"), gold)
    assert mistake is not None
    assert mistake.weight == 4
    assert [tuple(piece) for piece in mistake.pieces] == [
        ("a b ", "right", "X"),
        ("c ", "extra", "X"),
        ("d ", "missed", "Y"),
        ("e ", "wrong", "Z \N{RIGHTWARDS ARROW} X"),
        ("f ", "", ""),
    ]
    assert TaggingTask().mistake(gold.tags or (), gold) is None


def test_spans_are_read_once_whatever_the_number_of_words() -> None:
    num_reads = 0

    class Spans(list[Annotation]):
        def __iter__(self) -> Iterator[Annotation]:
            nonlocal num_reads
            num_reads += 1
            return super().__iter__()

    pieces = span_pieces("abcd", Spans([Annotation(1, 3, "X")]), Spans())

    assert [tuple(piece) for piece in pieces] == [
        ("a ", "", ""),
        ("b c ", "missed", "X"),
        ("d ", "", ""),
    ]
    assert num_reads == 2


def test_the_weight_of_a_label_is_its_loss() -> None:
    pair = SentencePair(("a", "b"), ("c",), "neutral")
    probabilities = {"neutral": 0.25, "entailment": 0.75}
    mistake = EntailmentTask().mistake(Classification("entailment", probabilities), pair)
    assert mistake is not None
    assert mistake.weight == pytest.approx(-log(0.25))
    assert mistake.summary == "neutral 0.25, predicted: entailment 0.75"
    assert "".join(piece.text for piece in mistake.pieces) == "a b / c"
    assert EntailmentTask().mistake(Classification("neutral", probabilities), pair) is None


def test_answers_are_marked_in_their_passage() -> None:
    tokenizer = build_tokenizer("whitespace")
    passage = TokenizedText.of("Anna built it in 1871 there", tokenizer)
    question = TokenizedText.of("Who ?", tokenizer)
    example = PassageQuestion("1", passage, question, ("Anna",), passage.span(0, 4))
    mistake = QuestionAnsweringTask().mistake(Answer("1871", 17, 21), example)
    assert mistake is not None
    assert [(piece.text, piece.mark) for piece in mistake.pieces] == [
        ("Anna", "missed"),
        (" built it in ", ""),
        ("1871", "extra"),
        (" there", ""),
    ]
    assert QuestionAnsweringTask().mistake(Answer("anna", 0, 4), example) is None


def test_the_worst_proposition_is_the_mistake() -> None:
    tags = ("B-A0", "B-V", "B-A1")
    example = SrlExample(("he", "sees", "her"), (Proposition(1, tags), Proposition(1, tags)))
    predicted = (Proposition(1, ("O", "B-V", "O")), Proposition(1, ("O", "B-V", "B-A1")))
    mistake = SrlTask().mistake(predicted, example)
    assert mistake is not None
    assert (mistake.weight, mistake.summary) == (2, "sees")
