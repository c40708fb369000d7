import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.entailment.reader import SnliReader
from elmo_framework.tasks.entailment.task import SentencePair

FIXTURE = Path(__file__).parents[3] / "fixtures/snli/pairs.jsonl"
SICK = {
    "premise_key": "sentence_A",
    "hypothesis_key": "sentence_B",
    "label_key": "entailment_label",
    "only": {"SemEval_set": "TRAIN"},
}


def reader(**options: Any) -> SnliReader:
    built = parse(DatasetReader, {"type": "snli", **options}, source="a.jsonnet").build()
    assert isinstance(built, SnliReader)
    return built


def test_raw_sentences_are_split_into_words():
    first, *_ = reader().read(FIXTURE)

    assert first == SentencePair(
        ("Two", "boys", "kick", "a", "ball", "in", "the", "park", "."),
        ("Children", "play", "outside", "."),
        "entailment",
    )


def test_pairs_without_agreement_are_skipped_and_counted(
    caplog: pytest.LogCaptureFixture,
):
    with caplog.at_level(logging.INFO):
        labels = [pair.label for pair in reader().read(FIXTURE)]

    assert len(labels) == 9
    assert set(labels) == {"entailment", "contradiction", "neutral"}
    assert f"{FIXTURE}: skipped 1 pair with the label '-' or '-1'" in caplog.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.jsonl",
            '{"sentence1": "a", "sentence2": "b", "gold_label": -1}\n'
            '{"sentence1": "c", "sentence2": "d", "gold_label": "-1"}\n'
            '{"sentence1": "e", "sentence2": "f", "gold_label": 1}\n',
        ),
        ("a.csv", "sentence1,sentence2,gold_label\na,b,-1\nc,d,-\ne,f,1\n"),
    ],
)
def test_label_minus_one_means_no_label(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, text: str
):
    path = tmp_path / name
    path.write_text(text)

    with caplog.at_level(logging.INFO):
        found = list(reader(tokenizer="whitespace").read(path))

    assert found == [SentencePair(("e",), ("f",), "1")]
    assert f"{path}: skipped 2 pairs with the label '-' or '-1'" in caplog.text


def test_one_labeled_file_of_a_folder_is_enough(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"sentence1": "a", "sentence2": "b", "gold_label": -1}\n')
    (tmp_path / "b.jsonl").write_text('{"sentence1": "c", "sentence2": "d", "gold_label": "x"}\n')
    whitespace = reader(tokenizer="whitespace")

    assert list(whitespace.read(tmp_path)) == [SentencePair(("c",), ("d",), "x")]
    with pytest.raises(DataError, match=r"a\.jsonl: no pair has both a label \(not '-'"):
        list(whitespace.read(tmp_path / "a.jsonl"))


def test_incomplete_pairs_are_skipped_on_request(tmp_path: Path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1;sentence2;gold_label\na;b;yes\na;;no\na;b; \n")
    pairs = reader(skip_incomplete=True).read(path)

    assert [pair.label for pair in pairs] == ["yes"]


def test_a_limit_counts_pairs():
    assert len(list(reader(max_instances=7).read(FIXTURE))) == 7


def test_the_table_of_multinli_is_read_by_its_columns(tmp_path: Path):
    path = tmp_path / "dev.tsv"
    path.write_text(
        "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
        '0\tfiction\tHe said "no\tHe spoke\tneutral\tentailment\n'
        "1\tfiction\tShe left\tShe stayed\tneutral\t-\n"
    )

    found = list(reader(tokenizer="whitespace").read(path))

    assert found == [SentencePair(("He", "said", '"no'), ("He", "spoke"), "entailment")]


def test_sick_is_read_by_columns_and_split(tmp_path: Path):
    path = tmp_path / "SICK.txt"
    path.write_text(
        "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\n"
        "1\tKids play\tKids sleep\tCONTRADICTION\t3.5\tTRAIN\n"
        "2\tA man runs\tA man moves\tENTAILMENT\t4.5\tTEST\n"
    )

    found = list(reader(tokenizer="whitespace", **SICK).read(path))

    assert found == [SentencePair(("Kids", "play"), ("Kids", "sleep"), "CONTRADICTION")]


def test_filter_column_may_have_empty_cells(tmp_path: Path):
    path = tmp_path / "SICK.csv"
    path.write_text("sentence_A,sentence_B,entailment_label,SemEval_set\na,b,X,\nc,d,Y,TRAIN\n")

    found = list(reader(tokenizer="whitespace", **SICK).read(path))

    assert found == [SentencePair(("c",), ("d",), "Y")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"sentence1": "a", "sentence2": "b"}',
            "missing key 'gold_label'; found: sentence1, ",
        ),
        (
            '{"gold_label": "x", "sentence1": "a"}',
            "missing key 'sentence2'; found: gold_label, ",
        ),
        (
            '{"gold_label": "x", "sentence1": "a", "sentence2": " "}',
            "'sentence2' has no words; remove the line",
        ),
        (
            '{"gold_label": "x", "sentence1": 3, "sentence2": "b"}',
            "'sentence1' is 3; expected a st",
        ),
        ("no JSON", "not a JSON object: Expecting value"),
    ],
)
def test_malformed_line_is_reported_with_its_file(tmp_path: Path, line: str, message: str):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"gold_label": "x", "sentence1": "a", "sentence2": "b"}}\n{line}\n')

    with pytest.raises(DataError) as raised:
        list(reader().read(path))

    assert str(raised.value).startswith(f"{path}:2: {message}")


def test_a_file_without_the_values_of_only_is_skipped(tmp_path: Path):
    header = "sentence_A\tsentence_B\tentailment_label\tSemEval_set\n"
    (tmp_path / "1.txt").write_text(f"{header}a\tb\tNEUTRAL\tTEST\n")
    (tmp_path / "2.txt").write_text(f"{header}c\td\tNEUTRAL\tTRAIN\n")
    incomplete = reader(**SICK, skip_incomplete=True)

    assert [*incomplete.read(tmp_path)] == [SentencePair(("c",), ("d",), "NEUTRAL")]
    with pytest.raises(DataError, match="no pair has"):
        list(incomplete.read(tmp_path / "1.txt"))
