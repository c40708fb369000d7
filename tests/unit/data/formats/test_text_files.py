from __future__ import annotations

import io
from pathlib import Path

import pytest

from elmo_framework.corpus.blocks import text_files
from elmo_framework.data.formats.text_files import data_files, decoded_lines, read_lines
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.embedding.corpus import SentenceFiles
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.reader import LanguageModelingReader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", ".hidden", "c.tsv"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "inner").mkdir()
    return tmp_path


def test_a_file_names_itself_even_when_hidden(folder: Path) -> None:
    assert data_files(folder / ".hidden") == [folder / ".hidden"]


def test_a_folder_names_its_visible_files_in_order(folder: Path) -> None:
    assert [file.name for file in data_files(folder)] == ["a.txt", "b.txt", "c.tsv"]


def test_a_pattern_names_the_files_that_match_in_order(folder: Path) -> None:
    assert [file.name for file in data_files(folder / "*.txt")] == ["a.txt", "b.txt"]


def test_pattern_is_relative_to_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert data_files(Path("[ab].txt")) == [Path("a.txt"), Path("b.txt")]


@pytest.mark.parametrize("name", ["missing.txt", "missing-*.txt", "missing/x"])
def test_a_path_that_names_nothing_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        data_files(folder / name)
    assert str(caught.value) == f"{folder / name}: not found, as a file, folder or pattern"


@pytest.mark.parametrize("name", ["a**", "**a", "inner/a**b/*"])
def test_two_stars_next_to_letters_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"invalid pattern: '.*'; '\*\*' must be a whole part"):
        data_files(folder / name)


def test_a_folder_without_files_is_refused(folder: Path) -> None:
    with pytest.raises(DataError) as caught:
        data_files(folder / "inner")
    assert str(caught.value) == f"{folder / 'inner'}: this folder has no files"


def test_folder_of_folders_error_shows_the_pattern(
    tmp_path: Path,
) -> None:
    file = tmp_path / "data/a/b.txt"
    file.parent.mkdir(parents=True)
    (file.parent / ".hidden").touch()
    every = tmp_path / "data/**/*"

    with pytest.raises(DataError, match=r"this folder has no files$"):
        data_files(tmp_path / "data")
    file.touch()
    with pytest.raises(DataError) as caught:
        data_files(tmp_path / "data")

    assert str(caught.value).endswith(f", but its subfolders do; pass {str(every)!r}")
    assert data_files(every) == [file]


def test_lines_come_with_their_numbers_and_without_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeffeins \r\n\nd\u2028rei\tü".encode())
    assert list(read_lines(path)) == [(1, "eins "), (2, ""), (3, "d\u2028rei\tü")]


def test_bytes_that_are_not_utf_8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"good\nb\xe4d\n")
    lines = read_lines(path)
    assert next(lines) == (1, "good")
    with pytest.raises(DataError) as caught:
        next(lines)
    assert str(caught.value) == (
        f"{path}:2: not valid UTF-8 text (b'\\xe4', column 2): convert the file to UTF-8"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(read_lines(tmp_path / "absent.txt"))
    message = f"{tmp_path / 'absent.txt'}: cannot be read: No such file or directory"
    assert str(caught.value) == message
    near = tmp_path / "absnt.txt"
    near.touch()
    with pytest.raises(DataError) as caught:
        list(read_lines(tmp_path / "absent.txt"))
    assert str(caught.value) == f"{message}. Did you mean {str(near)!r}?"


def test_the_lines_of_an_open_file_are_named_as_it_is_called() -> None:
    lines = decoded_lines(io.BytesIO(b"\xef\xbb\xbfgood\r\nb\xe4d\n"), Path("-"))
    assert next(lines) == (1, "good")
    with pytest.raises(DataError) as caught:
        next(lines)
    assert str(caught.value).startswith("standard input:2: not valid UTF-8 text")


@pytest.mark.parametrize("name", ["notes.csv", "notes.TSV", "notes.csv.gz"])
def test_tables_are_not_read_as_sentences(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("id,note\n1,Seen at night.\n")
    for read in (
        lambda: SentenceFiles([path], tokenizer=WhitespaceTokenizer()),
        lambda: text_files([path]),
        lambda: LanguageModelingReader(tokenizer=WhitespaceTokenizer()).examples(path),
    ):
        with pytest.raises(DataError, match="this is a table, and all of its columns would be"):
            read()
