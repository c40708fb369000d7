"""Readers of files: one file after the other, up to a limit, and never nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_framework.data.formats.file_format import FileSample
from elmo_framework.data.formats.text_files import error_context
from elmo_framework.data.reader import FileReader
from elmo_framework.errors import DataError


class Lines(FileReader[str]):
    """Reads lines, and leaves out those that begin with a `#`."""

    example_type = str

    def examples(self, file: Path) -> Iterator[str]:
        return (line for line in file.read_text().splitlines() if not line.startswith("#"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("first\n# note\nsecond\n")
    (tmp_path / "b.txt").write_text("third\n")
    return tmp_path


@pytest.mark.parametrize(("limit", "number"), [(None, 3), (2, 2), (9, 3)])
def test_files_are_read_one_after_the_other_up_to_a_limit(
    folder: Path, limit: int | None, number: int
) -> None:
    assert list(Lines(limit).read(folder)) == ["first", "second", "third"][:number]


def test_limit_does_not_apply_to_prediction_inputs(folder: Path) -> None:
    inputs = list(Lines(1).read_inputs(folder))
    assert [each.example for each in inputs] == ["first", "second", "third"]


def test_data_without_an_example_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("# note\n")
    with pytest.raises(DataError, match="the reader skips all examples of this data"):
        list(Lines().read(path))
    with pytest.raises(DataError, match="this file has no examples"):
        list(Lines().read_inputs(path))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<a><b/></a>", "a.xml: no sentence"),
        ("<a></b>", "a.xml: mismatched tag: line 1, column 5"),
        ("<a>x</a>", "a.xml:1: found 'x'"),
    ],
)
def test_error_of_a_reader_names_its_file_once(tmp_path: Path, content: str, expected: str) -> None:
    class XmlReader(FileReader[str]):
        example_type = str

        def examples(self, file: Path) -> Iterator[str]:
            root = ET.fromstring(file.read_text())
            with error_context(file, 1):
                if root.text:
                    raise ValueError(f"found {root.text!r}")
            raise ValueError("no sentence")
            yield

    file = tmp_path / "a.xml"
    file.write_text(content)
    for read in (XmlReader().read, XmlReader().read_inputs):
        with pytest.raises(DataError) as caught:
            list(read(file))
        assert str(caught.value) == str(tmp_path / expected)


def test_reader_without_formats_recognizes_only_xml(tmp_path: Path) -> None:
    lines = {"<corpus>": True, "Rain fell .": False}
    assert {line: Lines().recognizes(FileSample(tmp_path, [line])) for line in lines} == lines
