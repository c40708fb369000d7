"""What surrounds the models of question answering: counting, batches, formats."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace

import pytest
from rich.text import Text

from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import DataError
from elmo_framework.metrics.squad import Answer
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask
from tests.unit.tasks.question_answering.toy import COUNTS, EXAMPLES

TASK = QuestionAnsweringTask()
ANNA = Answer("Anna Lund", 99, 108)
UNANSWERED = replace(EXAMPLES[0], answers=None, span=None)


def test_a_passage_is_counted_once_for_all_its_questions():
    counts = TASK.count(EXAMPLES)

    assert set(counts) == {"words"}
    assert counts["words"]["Norvik"] == 2  # in the passage, and in a question
    assert counts["words"]["1871"] == 1
    assert counts["words"] == Counter(
        [
            *(word for example in EXAMPLES for word in example.question.words),
            *(word for example in EXAMPLES[::3] for word in example.passage.words),
            *EXAMPLES[5].passage.words,
        ]
    )


def test_a_batch_holds_passages_questions_and_answers():
    collate = pickle.loads(pickle.dumps(TASK.collator(COUNTS, [])))

    batch = collate(EXAMPLES[3:])

    assert batch.passage.words == tuple(example.passage.words for example in EXAMPLES[3:])
    assert batch.question.mask.sum(dim=1).tolist() == [7, 7, 8]
    assert batch.spans.tolist() == [[2, 2], [20, 20], [3, 3]]
    assert batch.num_tokens == 22 + 22 + 6 + 7 + 7 + 8
    assert batch.title == "'Where do the ferries come from?' and 2 more"


def test_a_batch_with_an_unanswered_question_has_no_answers():
    assert TASK.collator(COUNTS, [])([EXAMPLES[1], UNANSWERED]).spans is None


def test_the_length_is_that_of_the_passage():
    assert TASK.num_tokens(EXAMPLES[5]) == 6


def test_a_passage_is_one_sentence_for_elmo():
    example = EXAMPLES[0]

    assert list(TASK.sentences(example)) == [example.passage.words, example.question.words]


def test_a_prediction_is_compared_with_all_answers():
    assert TASK.gold(EXAMPLES[1]) == ("Anna", "Anna Lund", "Anna Lund")
    assert TASK.metrics["squad"].count(ANNA, TASK.gold(EXAMPLES[1]))["em"] == 1
    with pytest.raises(DataError, match="cannot be scored: 'norvik-built'"):
        TASK.gold(UNANSWERED)


def test_an_example_is_made_of_json():
    found = TASK.example({"question": "Who ?", "passage": " Anna  left ."}, WhitespaceTokenizer())

    assert (found.id, found.answers, found.span) == ("Who ?", None, None)
    assert found.question.words == ("Who", "?")
    assert found.passage.offsets == ((1, 5), (7, 11), (12, 13))


@pytest.mark.parametrize("given", ["7", 7])
def test_an_example_may_have_an_id(given):
    inputs = {"question": "Who ?", "passage": "Anna left .", "id": given}

    assert TASK.example(inputs, WhitespaceTokenizer()).id == "7"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {"question": "Who?", "pasage": "Anna."},
            "missing key 'passage'; found: pasage, question. Did you mean 'pasage'?",
        ),
        (
            {"sentence": "Who?"},
            'a plain sentence is not enough; pass {"question": "...", "passage": "..."}',
        ),
        ({"question": "Who?"}, "missing key 'passage'; found: question."),
        ({"question": 3, "passage": ""}, "'question' is 3; expected a string"),
        ({"question": "Who?", "passage": ""}, "the passage has no words: ''"),
        ({"question": " ", "passage": "Anna."}, "the question has no words: ' '"),
        (
            {"question": "Who?", "passage": "Anna.", "id": None},
            "'id' is None; expected a string or a whole number",
        ),
        (
            {"question": "Who?", "passage": "Anna.", "id": True},
            "'id' is True; expected a string or a whole number",
        ),
    ],
)
def test_json_without_a_question_is_refused(inputs, message):
    with pytest.raises(DataError) as raised:
        TASK.example(inputs, WhitespaceTokenizer())

    assert str(raised.value) == message


def test_a_prediction_is_written_with_its_place():
    example = EXAMPLES[1]

    written = TASK.to_json(ANNA, example)

    assert json.loads(json.dumps(written)) == {
        "id": "norvik-keeper",
        "question": "Who was the keeper?",
        "passage": example.passage.text,
        "answer": "Anna Lund",
        "start": 99,
        "end": 108,
    }


@pytest.mark.parametrize("num_predictions", [0, 1, 2])
def test_the_official_format_is_one_object_of_answers(num_predictions):
    quoted = Answer('an "old" lamp \u2013', 0, 1)
    pairs = [(ANNA, EXAMPLES[1]), (quoted, EXAMPLES[2])][:num_predictions]

    written = "".join(TASK.formats["squad"](pairs))

    expected = {"norvik-keeper": "Anna Lund", "norvik-burned": 'an "old" lamp \u2013'}
    assert json.loads(written) == dict(list(expected.items())[:num_predictions])
    assert written.endswith("}\n")


def test_an_answer_that_would_hide_another_is_refused():
    pieces = TASK.formats["squad"]([(ANNA, EXAMPLES[1]), (ANNA, EXAMPLES[1])])

    # At once, before any piece of what would be no JSON.
    with pytest.raises(DataError, match="two questions have the id 'norvik-keeper'; ids must"):
        next(pieces)


def marked(shown: Text) -> list[str]:
    return [
        shown.plain[span.start : span.end] for span in shown.spans if "green" in str(span.style)
    ]


def test_answer_is_bracketed_without_colors():
    shown = TASK.pretty(ANNA, EXAMPLES[1])

    assert shown.plain.startswith("Who was the keeper?\nThe lighthouse of Norvik ")
    assert shown.plain.endswith("when the keeper, [Anna Lund], bought a paraffin burner.")
    assert marked(shown) == ["[Anna Lund]"]


def test_answer_is_highlighted_after_control_characters():
    passage = "It is\r\nold.\a\v\f\b Anna\r\nLund left."
    inputs = {"question": "Who?", "passage": passage}
    example = TASK.example(inputs, WhitespaceTokenizer())
    start = passage.index("Anna")

    shown = TASK.pretty(Answer("Anna\r\nLund", start, start + 10), example)

    assert shown.plain == "Who?\nIt is\nold. [Anna\nLund] left."
    assert marked(shown) == ["[Anna\nLund]"]
