from pathlib import Path

import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row, read_blocks, read_sentences


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


def test_columns_stand_between_runs_of_spaces_and_tabs(tmp_path):
    path = written(tmp_path, "a\u00a0b\tO\nc  \t O \n")

    assert [row.columns for row in next(read_sentences(path))] == [("a\u00a0b", "O"), ("c", "O")]


def test_lines_that_start_a_document_are_skipped_whatever_their_columns(tmp_path):
    path = written(tmp_path, "-DOCSTART- -X- O O\n\nAnna O\n-DOCSTART-\nRain O\n\n")

    assert words(path) == [["Anna"], ["Rain"]]


def test_a_line_with_fewer_columns_is_refused(tmp_path):
    path = written(tmp_path, "\nAnna NNP O\nsleeps O\n")

    with pytest.raises(DataError) as raised:
        list(read_sentences(path))

    assert str(raised.value) == (f"{path}:3: found 2 columns, expected 3 as on line 2: 'sleeps O'")


def test_a_sentence_with_fewer_columns_than_the_first_is_refused(tmp_path):
    path = written(tmp_path, "Anna NNP O\n\nsleeps O\n")

    assert [row.columns for row in list(read_blocks(path))[1].rows] == [("sleeps", "O")]
    with pytest.raises(DataError, match=r":3: found 2 columns, expected 3 as on line 1: 'sleeps"):
        list(read_sentences(path))


def test_comments_end_a_sentence_and_belong_to_the_next(tmp_path):
    path = written(tmp_path, "# a\n\n # b\n1\t\tx y\n# c\n2\t#\t\n# d\n")

    first, second = read_blocks(path, separator="\t", comment="#")

    assert first.comments == [(1, "# a"), (3, "# b")]
    assert first.rows == [Row(4, ("1", "", "x y"))]
    assert second == ([Row(6, ("2", "#", ""))], [(5, "# c")])


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_a_file_without_a_sentence_is_refused(tmp_path, text):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        list(read_sentences(path))

    assert str(raised.value) == f"{path}: there is no sentence in this file"
