import gzip
from pathlib import Path

import pytest

from elmo_framework.data.formats.records import (
    Record,
    Separator,
    read_cells,
    read_records,
    words_of,
)
from elmo_framework.data.tokenizer import SpacyTokenizer, WhitespaceTokenizer
from elmo_framework.errors import DataError


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_line_of_json_is_a_record(tmp_path: Path):
    path = written(tmp_path / "a.jsonl", '{"text": "a b", "label": 3}\n\n{"text": "c"}\n')

    first, second = read_records(path)

    assert (first.text("text"), first.label("label"), first.line) == ("a b", "3", 1)
    assert (second.values, second.line) == ({"text": "c"}, 3)


def test_quoted_csv_cells_may_have_commas_and_newlines(tmp_path: Path):
    path = written(tmp_path / "a.csv", 'text,label\n"a, ""b""\nc",x\n\nd,y\n')

    records = list(read_records(path))

    assert [held.values for held in records] == [
        {"text": 'a, "b"\nc', "label": "x"},
        {"text": "d", "label": "y"},
    ]
    assert [held.line for held in records] == [3, 5]


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "A.TSV"])
def test_quotation_marks_are_text_in_a_table_with_tabs(tmp_path: Path, name: str):
    path = written(tmp_path / name, 'text\tlabel\n"a, b\tx\n')

    assert [held.values for held in read_records(path)] == [{"text": '"a, b', "label": "x"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('\nText;Klasse\n"a; b, c";x\n', {"Text": "a; b, c", "Klasse": "x"}),
        ('"Text";Klasse\na,b;x\n', {"Text": "a,b", "Klasse": "x"}),
        ('"a;b",c\nx,y\n', {"a;b": "x", "c": "y"}),
        ("a;b,c\nx,y\n", {"a;b": "x", "c": "y"}),
    ],
)
def test_csv_without_commas_in_its_first_line_has_semicolons(
    tmp_path: Path, text: str, expected: dict[str, str]
):
    (record,) = read_records(written(tmp_path / "a.csv", text))

    assert record.values == expected


def test_table_may_be_compressed(tmp_path: Path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b'text\n"a, b"\n'))

    assert [held.text("text") for held in read_records(path)] == ["a, b"]


def test_blank_rows_are_not_records(tmp_path: Path):
    path = written(tmp_path / "a.tsv", "text\tlabel\na\tx\n \t \nb\ty\n")

    assert [row.columns for row in read_cells(path)] == [
        ("text", "label"),
        ("a", "x"),
        (),
        ("b", "y"),
    ]
    assert [held.line for held in read_records(path)] == [2, 4]


@pytest.mark.parametrize(
    ("name", "separator", "expected"),
    [
        ("a.csv", None, ("a\tb", "c")),
        ("a.txt", None, ("a", "b,c")),
        ("a.csv", "tab", ("a", "b,c")),
        ("a.txt", "comma", ("a\tb", "c")),
    ],
)
def test_separator_follows_from_the_suffix_by_default(
    tmp_path: Path, name: str, separator: Separator | None, expected: tuple[str, ...]
):
    (row,) = read_cells(written(tmp_path / name, "a\tb,c\n"), separator)

    assert row.columns == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": \n', "2: not a JSON object: Expecting value, column 7"),
        ("a.jsonl", "[1]\n", "1: expected a JSON object, not [1]"),
        ("a.jsonl", "[" * 100_000, "1: not a JSON object: too many brackets inside each other"),
        ("a.jsonl", '{"a": ' + "1" * 5001 + "}", "1: not a JSON object: a number has too many"),
        ("a.jsonl", "\n", " this file has no examples"),
        ("a.tsv", "text\tlabel\n", " this file has no examples"),
        ("a.tsv", "a\tb\n\nx\n", "3: found 1 column, expected 2 as on line 1: 'x'"),
        (
            "a.csv",
            'a,b\n"x,y\nz,w\n',
            "2: invalid row of a table: unexpected end of data; is a quotation mark not closed?",
        ),
        (
            "a.csv",
            'a,b\nx,"y\nz,"w\n',
            "2: invalid row of a table: ',' expected after '\"'; is a quot",
        ),
        (
            "a.tsv",
            "a\tb\rc\n",
            r"1: invalid row of a table: a carriage return (\r) without a line feed",
        ),
        (
            "a.csv",
            "a,b\rc,d\r",
            r"1: invalid row of a table: a carriage return (\r) without a line f",
        ),
        (
            "a.csv",
            'a;b\n"x;y\n',
            "2: invalid row of a table: unexpected end of data; is a quotation mark not closed?",
        ),
        ("a.csv", "text,label,text\n", "1: more than one column is called 'text'"),
        ("a.csv", "text, text\n", "1: more than one column is called 'text'"),
        (
            "a.csv",
            "text|label\na|b\n",
            "1: found 1 column, called 'text|label'; a .csv file has commas or semicolons between "
            "columns, others have tabs",
        ),
        ("a.tsv", "text,label\n", "1: found 1 column, called 'text,label'; a .csv file has"),
        (
            "a.txt",
            '{"text": "a", "label": "b"}\n',
            "1: read as a table because of its suffix; rename a file of JSON objects to .jsonl",
        ),
        (
            "a.jsonl",
            r'{"a": 1, "text": "bad \ud83d b"}',
            "1: 'text' has the lone surrogate '\\ud83d'",
        ),
        ("a.jsonl", r'{"a": 1, "b": [{"\uDE00": 1}]}', "1: 'b' has the lone surrogate "),
    ],
)
def test_a_bad_line_is_named_with_its_file(tmp_path: Path, name: str, text: str, message: str):
    path = written(tmp_path / name, text)

    with pytest.raises(DataError) as raised:
        list(read_records(path))

    assert str(raised.value).startswith(f"{path}:{message}")


EMPTY = "'label' is empty; skip_incomplete of the reader skips such rows"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "a"}, "missing key 'label'; found: text."),
        ({"labels": "a"}, "missing key 'label'; found: labels. Did you mean 'labels'?"),
        ({"label": None}, "'label' is None; expected a string or a whole number"),
        ({"label": True}, "'label' is True; expected a string or a whole number"),
        ({"label": 0.5}, "'label' is 0.5; expected a string or a whole number"),
        ({"label": ""}, EMPTY),
        ({"label": " "}, EMPTY),
    ],
)
def test_a_label_is_a_string_or_a_whole_number(values: dict[str, object], message: str):
    with pytest.raises(DataError) as raised:
        Record(values, Path("a.jsonl"), 7).label("label")

    assert str(raised.value) == f"a.jsonl:7: {message}"


def test_labels_and_column_names_are_stripped(tmp_path: Path):
    path = written(tmp_path / "a.csv", "text, label\na,1\nb, 1\nc,1 \n")

    assert [held.label("label") for held in read_records(path)] == ["1", "1", "1"]


def test_whole_pairs_and_names_that_are_empty_are_read(tmp_path: Path):
    pairs = written(tmp_path / "a.jsonl", r'{"text": "\ud83d\ude00"}')
    unnamed = written(tmp_path / "a.csv", ",,text\n0,0,a\n")

    assert [held.text("text") for held in read_records(pairs)] == ["\N{GRINNING FACE}"]
    assert [held.text("text") for held in read_records(unnamed)] == ["a"]


def test_a_cell_may_be_as_long_as_a_book(tmp_path: Path):
    text = "word " * 40_000
    path = written(tmp_path / "a.csv", f"text,label\n{text},x\n")

    assert [held.text("text") for held in read_records(path)] == [text]


def test_a_text_is_split_into_words():
    record = Record({"text": "a b", "blank": " "}, Path("a.jsonl"), 7)

    assert record.words("text", WhitespaceTokenizer()) == ("a", "b")
    with pytest.raises(DataError) as raised:
        record.words("blank", WhitespaceTokenizer())
    assert str(raised.value) == "a.jsonl:7: 'blank' has no words; remove the line"
    half = Record({"text": "a \ud83d"}, Path("a.jsonl"), 7)
    with pytest.raises(DataError, match=r"a\.jsonl:7: lone surrogate"):
        half.words("text", SpacyTokenizer())


def test_a_text_is_a_string():
    with pytest.raises(DataError) as raised:
        Record({"text": ["a"]}, Path("a.jsonl"), 7).text("text")

    assert str(raised.value) == "a.jsonl:7: 'text' is ['a']; expected a string"


def test_words_are_a_list_of_strings():
    assert words_of({"words": ["a b", "c"]}, "words") == ("a b", "c")
    with pytest.raises(DataError, match="'words' is 'a'; expected a list of strings"):
        words_of({"words": "a"}, "words")


def test_a_whole_number_beyond_all_floats_is_no_number():
    with pytest.raises(DataError, match=r"'target' is 1000*.*; expected a number"):
        Record({"target": 10**400}).number("target")
