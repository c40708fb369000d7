from pathlib import Path

import pytest

from elmo_framework.data.formats.columns import (
    CellError,
    Row,
    conllu_metadata,
    one_cell,
    placed_cells,
    read_blocks,
    read_conllu,
    read_sentences,
    split_cells,
)
from elmo_framework.errors import DataError


def written(folder: Path, text: str) -> Path:
    path = folder / "data.txt"
    path.write_text(text, encoding="utf-8")
    return path


def words(path: Path) -> list[list[str]]:
    return [[row.columns[0] for row in rows] for rows in read_sentences(path)]


def test_a_blank_line_ends_a_sentence(tmp_path):
    path = written(tmp_path, "Anna B-PER\nsleeps O\n\n \t\nRain O\n")

    assert list(read_sentences(path)) == [
        [Row(1, ("Anna", "B-PER")), Row(2, ("sleeps", "O"))],
        [Row(5, ("Rain", "O"))],
    ]


def test_columns_are_separated_by_spaces_and_tabs(tmp_path):
    path = written(tmp_path, "a\u00a0b\tO\nc  \t O \n")

    assert [row.columns for row in next(read_sentences(path))] == [("a\u00a0b", "O"), ("c", "O")]


def test_document_starts_are_skipped(tmp_path):
    path = written(tmp_path, "-DOCSTART- -X- O O\n\nAnna O\n-DOCSTART-\nRain O\n\n")

    assert words(path) == [["Anna"], ["Rain"]]


def test_a_line_with_fewer_columns_is_refused(tmp_path):
    path = written(tmp_path, "\nAnna NNP O\nsleeps O\n")

    with pytest.raises(DataError) as raised:
        list(read_sentences(path))

    assert str(raised.value) == (f"{path}:3: found 2 columns, expected 3 as on line 2: 'sleeps O'")


def test_sentence_with_fewer_columns_is_refused(tmp_path):
    path = written(tmp_path, "Anna NNP O\n\nsleeps O\n")

    assert [row.columns for row in list(read_blocks(path))[1].rows] == [("sleeps", "O")]
    with pytest.raises(DataError, match=r":3: found 2 columns, expected 3 as on line 1: 'sleeps"):
        list(read_sentences(path))


def test_comments_end_a_sentence_and_belong_to_the_next(tmp_path):
    path = written(tmp_path, "# a\n\n # b\n1\t\tx y\n# c\n2\t#\t\n# d\n")

    first, second = read_blocks(path, between="tabs", comment="#")

    assert first.comments == [(1, "# a"), (3, "# b")]
    assert first.rows == [Row(4, ("1", "", "x y"))]
    assert second == ([Row(6, ("2", "#", ""))], [(5, "# c")])


@pytest.mark.parametrize(
    ("between", "tabbed", "spaced"),
    [
        ("blanks", ("a", "b", "c"), ("a", "b")),
        ("tabs", ("a", "", "b c", ""), ("a  b",)),
        ("tabs or blanks", ("a", "", "b c", ""), ("a", "b")),
    ],
)
def test_cells_between_tabs_may_be_empty_or_have_spaces(between, tabbed, spaced):
    assert split_cells("a\t\tb c\t", between) == tabbed
    assert split_cells("a  b", between) == spaced


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        ({"width": 3}, "expected 3 with blanks between them"),
        ({"min_width": 3}, "expected at least 3 with blanks between them"),
    ],
)
def test_first_row_of_wrong_width_is_refused(tmp_path, widths, expected):
    path = written(tmp_path, "Anna O\nsleeps VB O\n")

    with pytest.raises(DataError) as raised:
        list(read_blocks(path, **widths))

    assert str(raised.value) == f"{path}:1: found 2 columns, {expected}: 'Anna O'"


def test_rows_may_be_wider_than_the_minimum(tmp_path):
    path = written(tmp_path, "Anna NN O\n")

    assert len(list(read_blocks(path, min_width=2))) == 1
    with pytest.raises(DataError, match=":1: found 3 columns, expected 2 with"):
        list(read_blocks(path, width=2))


def test_conllu_skips_multiword_tokens_and_empty_nodes(tmp_path):
    path = written(tmp_path, "# a\n1-2\twanna\n1\twant\n2\tto\n2.1\tgo\n\n0.1\tgo\n\n1\tRain\n")

    assert [block.rows for block in read_conllu(path, width=2)] == [
        [Row(3, ("1", "want")), Row(4, ("2", "to"))],
        [Row(9, ("1", "Rain"))],
    ]


def test_all_rows_of_conllu_can_be_read(tmp_path):
    path = written(tmp_path, "1-2\twanna\n1\twant\n2\tto\n2.1\tgo\n\n0.1\tgo\n")

    blocks = list(read_conllu(path, width=2, words_only=False))

    assert [[row.columns[0] for row in rows] for rows, _ in blocks] == [["1-2", "1", "2", "2.1"]]


def test_comments_of_conllu_hold_metadata(tmp_path):
    path = written(tmp_path, "# newpar\n# sent_id = 7\n# text = a = b\n1\ta\n\n1\tRain\n")

    first, second = read_conllu(path, width=2)

    assert conllu_metadata(first) == {"sent_id": "7", "text": "a = b"}
    assert conllu_metadata(second) == {}


@pytest.mark.parametrize("number", ["", "3a", "1-", "1.2.3", "\u00b2"])
def test_words_of_conllu_have_a_number(tmp_path, number):
    path = written(tmp_path, f"a\t1\nb\t{number}\n")

    with pytest.raises(DataError) as raised:
        list(read_conllu(path, width=2, number_column=1))

    expected = f"{number!r} is not a word number such as 1, 1-2 or 1.1"
    assert str(raised.value) == f"{path}:2: {expected}"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("2", ":1: found the word 2, expected 1"),
        ("1 3", ":2: found the word 3, expected 2"),
        ("1 1-2 2.1 1", ":4: found the word 1, expected 2 (a blank line ends a sentence)"),
    ],
)
def test_words_of_conllu_are_counted_from_1(tmp_path, numbers, message):
    path = written(tmp_path, "".join(f"{number}\tRain\n" for number in numbers.split()))

    with pytest.raises(DataError) as raised:
        list(read_conllu(path, width=2))

    assert str(raised.value).startswith(f"{path}{message}")


def test_a_bad_cell_is_named_with_its_line():
    with pytest.raises(DataError) as raised, placed_cells(Path("a.txt"), range(4, 9)):
        raise CellError(2, "this is none")

    assert str(raised.value) == "a.txt:6: this is none"


def test_a_cell_holds_no_spaces():
    assert [one_cell(text) for text in ("a", "10 000", "\u3000", "")] == ["a", "10_000", "_", "_"]


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_a_file_without_a_sentence_is_refused(tmp_path, text):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        list(read_sentences(path))

    assert str(raised.value) == f"{path}: this file has no sentences"
