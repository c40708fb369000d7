from pathlib import Path

import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.data.columns import Row, read_sentences


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


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_a_file_without_a_sentence_is_refused(tmp_path, text):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        list(read_sentences(path))

    assert str(raised.value) == f"{path}: there is no sentence in this file"
