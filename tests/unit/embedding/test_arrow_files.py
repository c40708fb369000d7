"""Tables as input: shards, columns, identifiers and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.commands.main import main
from elmo_framework.config.job_part import JobPart
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.embedding.arrow_files import Columns
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.shards import read_shards
from elmo_framework.errors import DataError, RunError
from tests.unit.embedding.conftest import TEXT
from tests.unit.embedding.test_shard_formats import read_shards_of
from tests.unit.embedding.test_shards import contents, visible

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

Make = Callable[..., EmbeddingJob]

TOKENS = [line.split() for line in TEXT]
IDS = [f"row {number}" for number in range(len(TEXT))]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A Parquet file of three row groups."""
    path = tmp_path / "table.parquet"
    parquet.write_table(
        pa.table({"id": IDS, "text": TEXT, "words": TOKENS}), path, row_group_size=3
    )
    return path


@pytest.fixture
def make(job: Make, tmp_path: Path, table: Path) -> Make:
    def changed(**changes: Any) -> EmbeddingJob:
        options = {"sentences": [table], "output_dir": tmp_path / "out", "output": Path("-")}
        return job(**options | changes)

    return changed


def write_arrow(path: Path, *, is_stream: bool) -> Path:
    content = pa.table({"text": TEXT})
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(path, content.schema) as writer:
        writer.write_table(content, max_chunksize=3)
    return path


def test_rows_have_the_vectors_of_the_same_lines(make: Make, job: Make, tmp_path: Path) -> None:
    embed(make(format="npy"))
    embed(job(output_dir=tmp_path / "lines", output=Path("-")))
    arrays = read_shards_of(tmp_path / "out", "npy")
    lines = read_shards_of(tmp_path / "lines", "npy")
    assert len(arrays) == len(TEXT)
    for array, line in zip(arrays, lines, strict=True):
        np.testing.assert_allclose(array, line, atol=2e-6)


def test_each_row_group_is_a_shard_of_one_part(make: Make, tmp_path: Path) -> None:
    embed(make(format="parquet"))
    for number in (1, 0):
        embed(make(format="parquet", output_dir=tmp_path / "parts", part=JobPart(number, 2)))
    assert len(visible(tmp_path / "out")) == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "parts")


def test_identifiers_are_in_the_output(make: Make, tmp_path: Path) -> None:
    embed(make(format="parquet", pool="mean"))
    tables = [parquet.read_table(path) for path in visible(tmp_path / "out")]
    assert [value for each in tables for value in each.column("id").to_pylist()] == IDS


def test_lists_of_words_are_not_tokenized(tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    parquet.write_table(pa.table({"words": [["New York", "is"], None], "n": [7, 8]}), path)

    class Unused:
        def words(self, text: str) -> list[str]:
            assert not text
            return []

    (shard,) = read_shards([path], JobPart(0, 1), Columns("words", "n"))
    lines = shard.lines(Unused())  # type: ignore[arg-type]
    assert [(line.tokens, line.id) for line in lines] == [(["New York", "is"], 7), ([], 8)]


@pytest.mark.parametrize("is_stream", [False, True])
def test_record_batches_of_arrow_are_shards(tmp_path: Path, is_stream: bool) -> None:
    path = write_arrow(tmp_path / "table.arrow", is_stream=is_stream)
    every = [shard for n in range(2) for shard in read_shards([path], JobPart(n, 2))]
    every.sort(key=lambda shard: shard.name)
    assert [shard.range.texts for shard in every] == [TEXT[:3], TEXT[3:6], TEXT[6:]]


def test_changed_rows_are_refused(make: Make, table: Path, monkeypatch) -> None:
    monkeypatch.setattr(
        "elmo_framework.embedding.shards._sample_digest_if_local", lambda file: None
    )
    embed(make())
    texts = ["Birds are words .", *TEXT[1:]]
    parquet.write_table(
        pa.table({"id": IDS, "text": texts, "words": TOKENS}), table, row_group_size=3
    )
    with pytest.raises(RunError, match="the text of shard 000000-000000 has changed"):
        embed(make())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text_column": "txt"}, "--text-column: no column 'txt'; .*Did you mean 'text'"),
        ({"id_column": "key"}, "--id-column: no column 'key'"),
        (
            {"text_column": "id", "id_column": "words"},
            "column 'words' has .*expected strings or int",
        ),
    ],
)
def test_wrong_columns_are_refused(make: Make, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        embed(make(**changes))


def test_columns_of_plain_text_are_refused(make: Make, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b\n")
    with pytest.raises(RunError, match="--text-column is for Parquet and Arrow"):
        embed(make(sentences=[text], text_column="note"))
    with pytest.raises(RunError, match="--id-column is for Parquet and Arrow"):
        embed(make(sentences=[text], id_column="key"))


def test_an_error_of_the_tokenizer_names_the_file(
    make: Make, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(self: WhitespaceTokenizer, sentence: str) -> list[str]:
        raise DataError("too long")

    monkeypatch.setattr(WhitespaceTokenizer, "words", words)
    with pytest.raises(DataError) as caught:
        embed(make())
    assert str(caught.value) == f"{table}: too long"


def test_identifiers_that_need_a_64th_bit_are_refused(make: Make, table: Path) -> None:
    ids = pa.array([2**63 + n for n in range(len(TEXT))], pa.uint64())
    parquet.write_table(pa.table({"id": ids, "text": TEXT}), table)
    with pytest.raises(DataError, match="column 'id' has 9223372036854775808; expected strings or"):
        embed(make(format="parquet"))


def test_tokens_with_line_ends_are_words_of_their_own(
    make: Make, table: Path, tmp_path: Path
) -> None:
    words = [["New\nYork"], ["New", "York"], ["is", "big"]]
    parquet.write_table(pa.table({"words": words}), table)
    embed(make(format="npy", text_column="words"))
    together = read_shards_of(tmp_path / "out", "npy")
    bilm = load_bilm(make().bilm, device="cpu")
    for found, layers in zip(together, bilm.embed(words), strict=True):
        np.testing.assert_allclose(found, layers.swapaxes(0, 1), atol=2e-6)


@pytest.mark.parametrize("name", ["broken.parquet", "broken.arrow"])
def test_broken_tables_are_named(make: Make, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("no table")
    with pytest.raises(DataError, match=f"{name}: not a readable table"):
        embed(make(sentences=[tmp_path / name]))


def test_tables_need_a_folder_of_shards(
    job: Make, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", str(job().bilm), str(table), "--output-file", "x.npy"]) == 2
    assert "a table needs --output-dir" in capsys.readouterr().err
