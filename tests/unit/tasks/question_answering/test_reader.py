"""The reader of SQuAD's files."""

from __future__ import annotations

import copy
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.data.tokenizer import SpacyTokenizer, Tokenizer
from elmo_framework.errors import DataError
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span
from elmo_framework.tasks.question_answering.reader import SquadReader

FIXTURE = Path(__file__).parents[3] / "fixtures" / "squad" / "train.json"
QUESTION = {"id": "q1", "question": "Big?", "answers": [{"answer_start": 0, "text": "Warsaw"}]}
GOOD = {"data": [{"paragraphs": [{"context": "Warsaw is big.", "qas": [QUESTION]}]}]}


def reader(**options: Any) -> SquadReader:
    return SquadReader(SpacyTokenizer(), **options)


def read(path: Path, **options: Any) -> list[PassageQuestion]:
    return list(reader(**options).read(path))


def written(directory: Path, held: object) -> Path:
    path = directory / "squad.json"
    path.write_text(json.dumps(held))
    return path


def changed(**changes: Any) -> dict[str, Any]:
    held = copy.deepcopy(GOOD)
    held["data"][0]["paragraphs"][0]["qas"][0].update(changes)
    return held


def answering(directory: Path, context: str, *answers: tuple[int, str]) -> PassageQuestion:
    listed = [{"answer_start": start, "text": text} for start, text in answers]
    held = changed(answers=listed)
    held["data"][0]["paragraphs"][0]["context"] = context
    (example,) = read(written(directory, held))
    return example


def test_questions_come_with_their_passages():
    examples = read(FIXTURE)

    assert [example.id for example in examples[:4]] == [
        "norvik-built",
        "norvik-keeper",
        "norvik-burned",
        "ferries-from",
    ]
    first = examples[0]
    assert first.question.words[:3] == ("When", "was", "the")
    assert first.passage.words[:5] == ("The", "lighthouse", "of", "Norvik", "was")
    assert first.answers == ("1871",)
    assert examples[2].passage is first.passage
    assert examples[3].passage is not first.passage


def test_answers_are_spans_of_their_passage():
    for example in read(FIXTURE):
        start, end = example.passage.characters(example.span)
        assert example.passage.text[start:end] in example.answers


def test_most_frequent_answer_is_the_training_target(tmp_path):
    example = answering(tmp_path, "A big red bus.", (2, "big"), (6, "red"), (2, "big"), (2, "big"))
    tied = answering(tmp_path, "A big red bus.", (6, "red"), (2, "big"), (2, "big"), (6, "red"))

    assert example.span == Span(1, 1)
    assert example.answers == ("big", "red", "big", "big")
    assert tied.span == Span(2, 2)


def test_same_text_at_another_position_is_wrong(tmp_path):
    example = answering(tmp_path, "So so so.", (3, "so"), (6, "so"), (6, "so"))

    assert example.span == Span(2, 2)


def test_answer_inside_words_is_widened_and_counted(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, logger="elmo_framework"):
        example = answering(tmp_path, "The fourteenth season, again.", (4, "fourteen"))

    assert example.span == Span(1, 1)
    assert example.answers == ("fourteen",)
    path = tmp_path / "squad.json"
    assert caplog.messages[-2:] == [
        "data[0].paragraphs[0].qas[0] (question 'q1'): the answer 'fourteen' at 4 was extended to "
        "'fourteenth'",
        f"{path}: 1 question; answers extended to word boundaries: 1",
    ]


def test_spaces_around_an_answer_do_not_widen_it(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="elmo_framework"):
        example = answering(tmp_path, "A big red bus.", (1, " big "))

    assert example.span == Span(1, 1)
    assert "answers extended to word boundaries: 0" in caplog.text


def test_questions_of_long_passages_can_be_skipped(caplog):
    with caplog.at_level(logging.INFO, logger="elmo_framework"):
        examples = read(FIXTURE, passage_length_limit=22)

    assert [example.id for example in examples] == ["ferries-from", "ferries-winter", "bees-queen"]
    assert "skipped 3 questions with passages longer than 22 words" in caplog.text


def test_the_number_of_questions_can_be_limited():
    assert [example.id for example in read(FIXTURE, max_instances=1)] == ["norvik-built"]


def test_files_of_a_folder_are_read_in_order(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(FIXTURE.read_text())

    assert len(read(tmp_path)) == 12


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "squad.json.gz"
    path.write_bytes(gzip.compress(FIXTURE.read_bytes()))

    assert read(path) == read(FIXTURE)


def test_a_file_without_questions_is_refused(tmp_path):
    path = written(tmp_path, {"data": []})

    with pytest.raises(DataError, match="this file contains no question"):
        read(path)


WHERE = "data[0].paragraphs[0].qas[0] (question 'q1')"


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([], "expected an object, found []"),
        ({"date": []}, "missing key 'data'; found: date. Did you mean 'date'?"),
        ({"data": {}}, "'data' is {}; expected a list"),
        ({"data": [3]}, "data[0]: expected an object, found 3"),
        ({"data": [{}]}, "data[0]: missing key 'paragraphs'; found: (none)."),
        (
            {"data": [{"paragraphs": [{"context": 3, "qas": []}]}]},
            "data[0].paragraphs[0]: 'context' is 3; expected a string",
        ),
        (changed(id=7), "data[0].paragraphs[0].qas[0]: 'id' is 7; expected a string"),
        (changed(question=None), f"{WHERE}: 'question' is None; expected a string"),
        (changed(question=" "), f"{WHERE}: the question has no words: ' '"),
        (
            changed(answers=[]),
            f"{WHERE}: 'answers' is empty; mark a question without an answer with "
            "'is_impossible': true",
        ),
        (
            changed(is_impossible="no"),
            f"{WHERE}: 'is_impossible' is 'no'; expected true or false",
        ),
        (
            changed(is_impossible=True),
            f"{WHERE}: 'is_impossible' is true, but 'answers' is not empty",
        ),
        (
            changed(answers=[{"text": "Warsaw"}]),
            "data[0].paragraphs[0].qas[0] (question 'q1').answers[0]: "
            "missing key 'answer_start'; found: text.",
        ),
        (
            changed(answers=[{"text": "Warsaw", "answer_start": True}]),
            f"{WHERE}.answers[0]: 'answer_start' is True; expected a whole number",
        ),
        (
            changed(answers=[{"text": "Warsaw", "answer_start": 1}]),
            f"{WHERE}.answers[0]: the answer 'Warsaw' is not at character 1 of the "
            "passage, where 'arsaw ' is",
        ),
        (
            changed(answers=[{"text": "Warsaw", "answer_start": -14}]),
            f"{WHERE}.answers[0]: 'answer_start' is -14; expected 0 or more",
        ),
        (
            changed(question="Big \ud83d?"),
            f"{WHERE}: 'question' has the lone surrogate '\\ud83d'",
        ),
        (
            changed(answers=[{"text": "", "answer_start": 6}]),
            f"{WHERE}: the answer '' contains no word of the passage",
        ),
    ],
)
def test_error_names_the_question(tmp_path, held, message):
    path = written(tmp_path, held)

    with pytest.raises(DataError) as raised:
        read(path)

    assert str(raised.value) == f"{path}: {message}"


def test_repeated_question_id_is_refused_with_its_place(tmp_path):
    held = copy.deepcopy(GOOD)
    held["data"].append(copy.deepcopy(held["data"][0]))
    path = written(tmp_path, held)

    with pytest.raises(DataError) as raised:
        read(path)

    assert str(raised.value) == (
        f"{path}: data[1].paragraphs[0].qas[0] (question 'q1'): "
        "an earlier question has the id 'q1'; ids must be unique"
    )


def test_questions_without_an_answer_are_read(caplog):
    with caplog.at_level(logging.INFO, logger="elmo_framework"):
        examples = read(FIXTURE.with_name("no_answer.json"))

    unanswerable = [example for example in examples if example.span is None]
    assert [example.id for example in unanswerable] == ["norvik-painted", "ferries-price"]
    assert all(example.answers == () for example in unanswerable)
    assert examples[0].answers == ("1871",)
    assert "without an answer: 2" in caplog.text


@pytest.mark.parametrize("answers", [{}, {"answers": []}])
def test_impossible_question_needs_no_list_of_answers(tmp_path, answers):
    document = changed(is_impossible=True)
    question = document["data"][0]["paragraphs"][0]["qas"][0]
    del question["answers"]
    question.update(answers)

    (example,) = read(written(tmp_path, document))

    assert (example.answers, example.span) == ((), None)


def test_inputs_copy_the_keys_of_version_2():
    inputs = list(reader().inputs(FIXTURE.with_name("no_answer.json")))

    assert inputs[1].example.answers is None
    assert inputs[1].fields["is_impossible"] is True
    assert inputs[1].fields["plausible_answers"][0]["text"] == "Anna Lund"


class ChangingTokenizer(Tokenizer):
    def sentences(self, text):
        return [text]

    def words(self, sentence):
        return ["``"]


def test_tokenizer_that_changes_words_is_refused(tmp_path):
    path = written(tmp_path, GOOD)

    with pytest.raises(DataError) as raised:
        list(SquadReader(ChangingTokenizer()).read(path))

    assert str(raised.value) == (
        f"{path}: data[0].paragraphs[0]: the word '``' of the tokenizer is not in 'Warsaw is big.'"
    )


def test_a_passage_without_words_is_refused(tmp_path):
    held = copy.deepcopy(GOOD)
    held["data"][0]["paragraphs"][0]["context"] = " "
    held["data"][0]["paragraphs"][0]["qas"][0]["answers"] = [{"answer_start": 0, "text": " "}]

    with pytest.raises(DataError, match="the answer ' ' contains no word of the passage"):
        read(written(tmp_path, held))


def test_invalid_json_is_refused_with_its_line(tmp_path):
    path = tmp_path / "squad.json"
    path.write_text('{"data":\n  [,]}')

    with pytest.raises(DataError, match=r"squad\.json:2: invalid JSON: Expecting value$"):
        read(path)


def test_deeply_nested_json_is_refused(tmp_path):
    path = tmp_path / "squad.json"
    path.write_text(f'{{"data": {100_000 * "["}')

    with pytest.raises(DataError, match=r"squad\.json: invalid JSON: too many brackets inside"):
        read(path)


def test_invalid_utf8_is_refused(tmp_path):
    path = tmp_path / "squad.json"
    path.write_bytes(b'{"data": "\xe9"}')

    with pytest.raises(DataError, match=r"squad\.json: not valid UTF-8 text"):
        read(path)
