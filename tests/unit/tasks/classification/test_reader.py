import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.classification.reader import TextClassificationReader
from elmo_framework.tasks.classification.task import ClassifiedText

FIXTURE = Path(__file__).parents[3] / "fixtures/text_classification/topics.csv"


def reader(**options: Any) -> TextClassificationReader:
    built = parse(
        DatasetReader, {"type": "text_classification_json", **options}, source="a.jsonnet"
    ).build()
    assert isinstance(built, TextClassificationReader)
    return built


def test_a_table_with_commas_is_read_and_split_into_words():
    first, *_, last = reader().read(FIXTURE)

    assert first == ClassifiedText(("Stir", "the", "soup", ",", "slowly", "."), "cooking")
    assert last.label == "weather"


def test_columns_tokenizer_and_limit_are_configurable(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"review": "Good fun.", "stars": 5}\n{"review": "Bad", "stars": 1}\nno JSON\n')

    options = {"tokenizer": "whitespace", "text_key": "review", "label_key": "stars"}
    found = list(reader(**options, max_instances=2).read(path))

    assert found == [ClassifiedText(("Good", "fun."), "5"), ClassifiedText(("Bad",), "1")]


def test_incomplete_records_are_skipped_on_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "texts.jsonl"
    records = [{"text": "a", "label": 0}, {"text": " ", "label": 1}, {"text": "b", "label": None}]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    skipping = reader(skip_incomplete=True)

    with caplog.at_level("INFO"):
        assert [text.label for text in skipping.read(path)] == ["0"]
    assert "skipped 2 records with an empty 'text' or 'label'" in caplog.text
    with pytest.raises(DataError, match="'text' has no words"):
        list(reader().read(path))
    with pytest.raises(DataError, match=r"texts.jsonl:1: missing key 'lable'; found: .*'label'\?"):
        list(reader(skip_incomplete=True, label_key="lable").read(path))


def test_minus_one_is_a_label(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Bad", "label": -1}\n{"text": "Good", "label": 1}\n')

    assert [text.label for text in reader(tokenizer="whitespace").read(path)] == ["-1", "1"]


def test_a_long_text_can_be_cut():
    assert [len(text.words) for text in reader(max_sequence_length=3).read(FIXTURE)] == [3] * 6


def test_a_text_without_words_is_refused(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": " ", "label": "x"}\n')

    with pytest.raises(DataError) as raised:
        list(reader().read(path))

    assert str(raised.value) == f"{path}:1: 'text' has no words; remove the line"


@pytest.mark.parametrize(("text", "words"), [("", ()), ("Stir the soup.", ("Stir", "the"))])
def test_text_to_predict_may_be_empty_and_is_cut(text: str, words: tuple[str, ...]):
    found = reader(max_sequence_length=2).unlabeled(Record({"text": text}))

    assert found == ClassifiedText(words, None)
