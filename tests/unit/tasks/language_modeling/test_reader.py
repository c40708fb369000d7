from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.corpus.tables import INDEXER
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.corpus import LanguageModelingExample
from elmo_framework.tasks.language_modeling.reader import (
    LanguageModelingReader,
    PreparedCorpusReader,
)
from elmo_framework.tasks.language_modeling.task import LanguageModelingTask


def reader(**keys: object) -> DatasetReader[LanguageModelingExample]:
    raw = {"type": "language_modeling", **keys}
    built: DatasetReader[LanguageModelingExample] = parse(
        DatasetReader, raw, source="test.jsonnet"
    ).build()
    assert isinstance(built, LanguageModelingReader)
    return built


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_text("third one .\n")
    (tmp_path / "a.txt").write_text("\nThe  first\t.\n   \nsecond\n")
    return tmp_path


def test_each_line_is_a_sentence_and_blank_lines_are_skipped(folder: Path) -> None:
    found = [example.words for example in reader().read(folder / "a.txt")]
    assert found == [("The", "first", "."), ("second",)]


def test_a_folder_and_a_pattern_are_read_file_by_file(folder: Path) -> None:
    found = [example.words[0] for example in reader().read(folder)]
    assert found == ["The", "second", "third"]
    assert list(reader().read(folder / "[ab].txt")) == list(reader().read(folder))


def test_max_instances_counts_over_all_files(folder: Path) -> None:
    assert len(list(reader(max_instances=2).read(folder))) == 2
    assert len(list(reader(max_instances=9).read(folder))) == 3


def test_reading_streams(folder: Path) -> None:
    (folder / "b.txt").write_bytes(b"\xff\n")
    sentences = reader().read(folder)
    assert next(sentences).words == ("The", "first", ".")
    next(sentences)
    with pytest.raises(DataError, match=r"b\.txt:1: not valid UTF-8 text"):
        next(sentences)


def test_a_file_without_a_sentence_is_refused(folder: Path) -> None:
    (folder / "b.txt").write_text("\n  \n")
    with pytest.raises(DataError) as caught:
        list(reader().read(folder))
    assert str(caught.value) == f"{folder / 'b.txt'}: this file has no sentences"


def test_compressed_files_are_read(folder: Path) -> None:
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"packed one .\n"))
    assert [example.words[0] for example in reader().read(folder / "c*")] == ["packed"]


def test_a_prepared_corpus_is_read_as_its_text(folder: Path) -> None:
    prepare(PreparationJob([folder], folder / "corpus", held_out=0.0))
    prepared: DatasetReader[LanguageModelingExample] = parse(
        DatasetReader, {"type": "prepared_corpus"}, source="test.jsonnet"
    ).build()
    assert list(prepared.read(folder / "corpus/training")) == list(reader().read(folder / "[ab]*"))


def test_max_instances_samples_the_whole_corpus(folder: Path) -> None:
    prepare(PreparationJob([folder], folder / "corpus", held_out=0.0))
    sampled = PreparedCorpusReader(max_instances=2).read(folder / "corpus/training")
    assert [example.words[0] for example in sampled] == ["The", "second"]


def test_sample_of_prepared_corpus_keeps_its_vocabulary(folder: Path) -> None:
    prepare(PreparationJob([folder], folder / "corpus", held_out=0.0))
    whole, sampled = (
        PreparedCorpusReader(max_instances=limit).read(folder / "corpus/training")
        for limit in (None, 1)
    )
    assert sampled.num_sentences == 1
    task = LanguageModelingTask()
    assert task.count(sampled) == task.count(whole)
    assert sampled.characters(INDEXER).shape == whole.characters(INDEXER).shape
