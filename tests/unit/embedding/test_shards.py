"""Folders of shards: the union of parts, what resumes, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import numpy as np
import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.job_part import JobPart, parse_part
from elmo_framework.corpus.blocks import LineRange
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.embedding import embed as embedding
from elmo_framework.embedding import shards
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.shards import ShardFolder, TextShard, read_shards
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.remote import as_path
from tests.unit.embedding.test_embed import hdf5, npy

LINES = [f"line {number} has words ." if number % 5 else "" for number in range(60)]

Make = Callable[..., EmbeddingJob]


@pytest.fixture
def sharded(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a job with two plain files and a compressed one, of several shards each."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 250)
    (tmp_path / "a.txt").write_text("\n".join(LINES[:20]) + "\n")
    (tmp_path / "b.txt").write_text("\n".join(LINES[20:40]))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress("\n".join(LINES[40:]).encode()))
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt.gz")]

    def make(**changes: Any) -> EmbeddingJob:
        output_dir = tmp_path / "out"
        return job(**{"sentences": files, "output_dir": output_dir, "format": "npy"} | changes)

    return make


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] not in "._")


@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_parts_cover_every_line_once(sharded: Make, count: int) -> None:
    files = list(sharded().sentences)
    every = [shard for index in range(count) for shard in read_shards(files, JobPart(index, count))]
    every.sort(key=lambda shard: shard.name)
    assert every == list(read_shards(files, JobPart(0, 1)))
    texts = [shard.range.content.decode().splitlines() for shard in every]
    assert [line for text in texts for line in text] == LINES
    assert len(every) > 4


def test_lines_longer_than_a_shard_stay_whole(tmp_path: Path, sharded: Make) -> None:
    (tmp_path / "long.txt").write_text("a\n" + "b" * 500 + "\nc\n")
    files = [tmp_path / "long.txt"]
    every = [shard.range.content for n in range(3) for shard in read_shards(files, JobPart(n, 3))]
    assert sorted(every) == [b"a\n" + b"b" * 500 + b"\n", b"c\n"]


@pytest.mark.parametrize("file_format", ["npy", "hdf5"])
@pytest.mark.parametrize("pool", ["none", "mean"])
def test_union_of_parts_equals_one_run(
    sharded: Make, tmp_path: Path, file_format: str, pool: str
) -> None:
    options = {"format": file_format, "pool": pool}
    embed(sharded(**options))
    for index in (2, 0, 1):
        embed(sharded(**options, output_dir=tmp_path / "parts", part=JobPart(index, 3)))
    assert contents(tmp_path / "out") == contents(tmp_path / "parts")


def test_shards_have_the_vectors_of_one_output(sharded: Make, tmp_path: Path) -> None:
    embed(sharded())
    embed(sharded(output_dir=None, output=tmp_path / "one"))
    every = [array for shard in visible(tmp_path / "out") for array in npy(shard)]
    whole = npy(tmp_path / "one")
    assert len(every) == len(LINES)
    for one, other in zip(every, whole, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


def test_shards_can_be_hdf5_files(sharded: Make, tmp_path: Path) -> None:
    embed(sharded(format="hdf5", dtype="float16"))
    every = [array for shard in visible(tmp_path / "out") for array in hdf5(shard)]
    assert [array.shape[1] for array in every] == [len(line.split()) for line in LINES]
    assert {array.dtype for array in every} == {np.dtype("float16")}


def test_only_missing_shards_are_computed(
    sharded: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard, started = embedding._write_shard, list[str]()

    def fail_at_the_third(parts: Any, path: Path, progress: Any) -> None:
        started.append(path.name)
        if len(started) == 3:
            path.mkdir()
            raise KeyboardInterrupt
        write_shard(parts, path, progress)

    monkeypatch.setattr(embedding, "_write_shard", fail_at_the_third)
    with pytest.raises(Exception, match="interrupted; run the same command again"):
        embed(sharded())
    assert len(visible(tmp_path / "out")) == 2
    embed(sharded())
    assert len(started) == len(set(started)) + 1  # the third again, and no other
    embed(sharded(output_dir=tmp_path / "whole"))
    assert contents(tmp_path / "whole").items() <= contents(tmp_path / "out").items()


@pytest.mark.parametrize(
    "changes", [{"layers": "top"}, {"dtype": "float16"}, {"format": "hdf5"}, {"pool": "max"}]
)
def test_shards_of_other_settings_are_refused(sharded: Make, changes: dict[str, Any]) -> None:
    embed(sharded(part=JobPart(0, 9)))
    with pytest.raises(RunError, match="its shards have other settings"):
        embed(sharded(part=JobPart(1, 9), **changes))


def test_settings_are_replaced_while_there_is_no_shard(sharded: Make, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="not valid UTF-8"):
        embed(sharded(sentences=[tmp_path / "b.txt"]))
    embed(sharded(part=JobPart(0, 9), dtype="float16"))
    with pytest.raises(RunError, match=r"other settings \(dtype: float16 -> float32\)"):
        embed(sharded(part=JobPart(1, 9)))


def test_settings_that_were_replaced_before_the_first_shard_are_refused(tmp_path: Path) -> None:
    shard = TextShard("000000-000000", LineRange(tmp_path / "a.txt", 1, b"a\n"))
    first, second = (
        ShardFolder(tmp_path / "out", {"columns": [name, None]}, suffix="")
        for name in ("tokns", "tokens")
    )
    first.create()
    writing = first.writing(shard)
    path = writing.__enter__()
    assert path is not None
    path.write_text("vectors")
    second.create()
    with pytest.raises(RunError, match=r"\(columns: tokens -> tokns\)"):
        writing.__exit__(None, None, None)
    assert not visible(tmp_path / "out")


def test_shards_of_an_earlier_arithmetic_are_refused(sharded: Make, tmp_path: Path) -> None:
    embed(sharded(part=JobPart(0, 9), precision="int8"))
    settings = tmp_path / "out/_settings.json"
    former = {**json.loads(settings.read_text()), "precision": "int8"}
    settings.write_text(json.dumps(former))
    with pytest.raises(RunError, match=r"other settings \(precision: int8 -> "):
        embed(sharded(part=JobPart(1, 9), precision="int8"))


def test_other_input_is_refused(sharded: Make, tmp_path: Path) -> None:
    embed(sharded(part=JobPart(0, 9)))
    with (tmp_path / "a.txt").open("a") as file:
        file.write("one more\n")
    with pytest.raises(RunError, match=r"other settings \(content\)"):
        embed(sharded(part=JobPart(1, 9)))


def test_text_changed_within_a_file_is_refused(
    sharded: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_framework.corpus.blocks._SAMPLE_BYTES", 10)
    embed(sharded())
    text = (tmp_path / "a.txt").read_text()
    (tmp_path / "a.txt").write_text(text.replace("line 2 has", "line 2 had"))
    with pytest.raises(RunError, match=r"a.txt: the text of shard 000000-000000 has changed"):
        embed(sharded())


def test_remote_compressed_files_are_copied_by_one_part(
    sharded: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = fsspec.filesystem("memory")
    for number in range(2):
        filesystem.pipe(f"/parts/{number}.txt.gz", gzip.compress(b"one line\n"))
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    files = [as_path(f"memory://parts/{number}.txt.gz") for number in range(2)]
    embed(sharded(sentences=files, part=JobPart(1, 2)))
    copies = [path.name for path in (tmp_path / "cache").rglob("*.gz")]
    assert len(copies) == 1
    assert copies[0].endswith("1.txt.gz")
    embed(sharded(sentences=files, part=JobPart(0, 2)))
    assert len(visible(tmp_path / "out")) == 2


def test_a_folder_with_other_files_is_refused(sharded: Make, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(RunError, match=r"contains other files \(thesis.tex, ...\)"):
        embed(sharded())


def test_errors_have_the_line_of_the_file(sharded: Make, tmp_path: Path) -> None:
    lines = [line.encode() for line in LINES]
    lines[50] = b"\xff"
    (tmp_path / "bad.txt").write_bytes(b"\n".join(lines))
    with pytest.raises(DataError, match=r"bad.txt:51: not valid UTF-8"):
        embed(sharded(sentences=[tmp_path / "bad.txt"]))


@pytest.mark.parametrize("has_shards", [True, False])
def test_errors_of_the_tokenizer_have_the_line_of_the_file(
    sharded: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_shards: bool
) -> None:
    def words(self: WhitespaceTokenizer, sentence: str) -> list[str]:
        if sentence.startswith("line 31 "):
            raise DataError("too long")
        return sentence.split()

    monkeypatch.setattr(WhitespaceTokenizer, "words", words)
    output = {} if has_shards else {"output_dir": None, "output": tmp_path / "out.npy"}
    with pytest.raises(DataError, match=r"b.txt:12: too long"):
        embed(sharded(sentences=[tmp_path / "b.txt"], **output))


def test_empty_files_are_skipped(sharded: Make, tmp_path: Path) -> None:
    empty, text = tmp_path / "empty.txt", tmp_path / "b.txt"
    empty.touch()
    shards = list(read_shards([empty, text], JobPart(0, 1)))
    assert {shard.range.path for shard in shards} == {text}
    with pytest.raises(DataError, match=r"empty.txt: no lines to embed"):
        embed(sharded(sentences=[empty]))


def test_standard_input_is_refused(sharded: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n")))
    with pytest.raises(RunError, match="--output-dir needs files"):
        embed(sharded(sentences=[Path("-")]))


@pytest.mark.parametrize("text", ["4/4", "1", "a/2", "-1/2", "0/0", "1/2/3"])
def test_a_part_is_a_number_below_the_number_of_parts(text: str) -> None:
    with pytest.raises(Exception, match="is not a part I/N"):
        parse_part(text)
    assert parse_part("3/4") == JobPart(3, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "1/2"], "--part needs --output-dir"),
        (["--output-dir", "new", "--output-file", "x.npy"], "exclude each other"),
        (["--output-dir", "new", "--force"], "--force does not go with --output-dir"),
        (["--output-dir", "new", "--resume"], "--resume does not go with --output-dir"),
        (["--output-dir", "new", "--use-sentence-keys"], "--use-sentence-keys does not go"),
        (["--output-dir", "new", "--state", "document"], "--state document does not go"),
    ],
)
def test_flags_that_exclude_shards_are_refused(
    sharded: Make, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(sharded().sentences[0])
    assert main(["embed", str(sharded().bilm), text, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_job_waits_for_a_shard_of_another(tmp_path: Path) -> None:
    shard = TextShard("000000-000000", LineRange(tmp_path / "a.txt", 1, b"a\n"))
    folder = ShardFolder(tmp_path / "out", {}, suffix="")
    folder.create()
    results = list[Path | None]()

    def second() -> None:
        with folder.writing(shard) as path:
            results.append(path)

    with folder.writing(shard) as path:
        assert path is not None
        other = Thread(target=second)
        other.start()
        other.join(0.2)
        assert not results
        path.write_text("vectors")
    other.join()
    assert results == [None]
    assert [file.name for file in visible(tmp_path / "out")] == ["000000-000000"]
