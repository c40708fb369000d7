from __future__ import annotations

import gzip
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import BuildError, DataError
from elmo_framework.tasks.classification.task import ClassifiedText

TEXTS = {"sport/b.txt": "She scored", "cooking/a": "Stir it", "sport/a.txt": "They\nwon"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "texts"


def reader(**keys: Any) -> DatasetReader[ClassifiedText]:
    config = {"type": "text_classification_folder", "tokenizer": "whitespace", **keys}
    built: DatasetReader[ClassifiedText] = parse(DatasetReader, config, source="test").build()
    return built


def test_texts_come_by_label_and_file_without_hidden_ones(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/a.txt").write_text("hidden")
    (folder / "sport/.DS_Store").write_bytes(b"\xff")

    assert list(reader().read(folder)) == [
        ClassifiedText(("Stir", "it"), "cooking"),
        ClassifiedText(("They", "won"), "sport"),
        ClassifiedText(("She", "scored"), "sport"),
    ]


def test_labels_and_max_length_are_configurable(folder: Path) -> None:
    (folder / "unsup").mkdir()

    found = list(reader(labels=["sport"], max_sequence_length=1).read(folder))

    assert found == [ClassifiedText(("They",), "sport"), ClassifiedText(("She",), "sport")]


def test_limit_is_balanced_over_labels(folder: Path) -> None:
    (folder / "cooking/b").write_text("Bake it")

    labels = Counter(text.label for text in reader(max_instances=2).read(folder))

    assert labels == {"cooking": 1, "sport": 1}


def test_files_and_patterns_have_the_label_of_their_folder(folder: Path) -> None:
    assert [text.label for text in reader().read(folder / "*/a*")] == ["cooking", "sport"]
    assert [text.label for text in reader().read(folder / "sport/b.txt")] == ["sport"]


def test_labels_select_files_of_patterns(folder: Path) -> None:
    selective = reader(labels=["sport"])

    assert [text.label for text in selective.read(folder / "*/*")] == ["sport", "sport"]
    assert selective.files(folder / "*/*") == [folder / "sport/a.txt", folder / "sport/b.txt"]
    assert len(list(selective.read_inputs(folder / "cooking/*"))) == 1
    with pytest.raises(DataError, match=r"no file for the label 'sport'; choose from cooking\."):
        list(selective.read(folder / "cooking/*"))


def test_files_may_be_compressed_and_in_another_encoding(folder: Path) -> None:
    (folder / "cooking/b.gz").write_bytes(gzip.compress("Caf\xe9".encode("latin-1")))

    found = list(reader(encoding="latin-1", labels=["cooking"]).read(folder))

    assert found[1].words == ("Caf\xe9",)


def test_files_outside_label_folders_are_skipped(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    (folder / "README").write_text("about")

    assert len(list(reader().read(folder))) == 3
    (record,) = caplog.records
    assert record.getMessage() == f"{folder}: skipped 1 files outside the folders of labels"


def test_prediction_reads_labeled_and_unlabeled_folders(folder: Path) -> None:
    labeled = list(reader(max_instances=1).read_inputs(folder))
    plain = list(reader().read_inputs(folder / "sport"))

    assert [each.fields.get("label") for each in labeled] == ["cooking", "sport", "sport"]
    assert all(each.example.label is None for each in labeled)
    assert [dict(each.fields) for each in plain] == [
        {"file": str(folder / "sport" / name)} for name in ("a.txt", "b.txt")
    ]


@pytest.mark.parametrize(
    ("name", "content", "place", "message"),
    [
        ("empty/.hidden", b"a", "empty", "found no file for this label; remove the folder"),
        ("sport/c.txt", b"caf\xe9", "sport/c.txt", r"not valid utf-8 text (b'\xe9' at byte 3)"),
        ("sport/c.txt", b" \n", "sport/c.txt", "this file has no words; remove it"),
        ("sport/inner/c.txt", b"a", "sport", "found the folder 'inner' in the folder of a label"),
    ],
)
def test_unreadable_file_is_refused_with_its_path(
    folder: Path, name: str, content: bytes, place: str, message: str
) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)

    with pytest.raises(DataError) as raised:
        list(reader().read(folder))

    assert str(raised.value).startswith(f"{folder / place}: {message}")


def test_missing_labels_and_folders_are_reported(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no folder for the label 'sports'; .*mean 'sport'\?"):
        list(reader(labels=["sports"]).read(folder))
    with pytest.raises(DataError, match="found no folder; expected a folder for each label"):
        list(reader().read(folder / "sport"))


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(
        BuildError, match="encoding is 'utf-88', which is not an encoding of Python"
    ):
        reader(encoding="utf-88")


def test_the_reader_of_tables_names_this_one(folder: Path) -> None:
    tables = parse(DatasetReader, "text_classification_json", source="test").build()

    for read in (tables.read, tables.read_inputs):
        with pytest.raises(DataError) as raised:
            list(read(folder))
        assert str(raised.value) == (
            f"{folder}: this folder has one folder per label; use dataset_reader.type "
            "'text_classification_folder'"
        )
