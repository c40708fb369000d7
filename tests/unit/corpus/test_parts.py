from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from elmo_framework.config.job_part import JobPart
from elmo_framework.corpus import tokenize, tokenized_blocks
from elmo_framework.corpus.job import PreparationJob
from elmo_framework.corpus.prepare import prepare
from elmo_framework.corpus.tokenize import TokenizedBlock
from elmo_framework.data.tokenizer import WhitespaceTokenizer
from elmo_framework.errors import ConfigError, DataError, RunError
from tests.unit.corpus.conftest import many_sentences


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenized_blocks, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(tokenized_blocks, "_SECONDS_TO_START", 0.2)


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    lines = many_sentences(600).splitlines(keepends=True)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.gz", tmp_path / "c.txt"]
    paths[0].write_text("".join(lines[:300]))
    paths[1].write_bytes(gzip.compress("".join(lines[300:400]).encode()))
    paths[2].write_text("".join(lines[400:]))
    return paths


def run(texts: list[Path], output: Path, **changes: Any) -> Path:
    prepare(PreparationJob(texts, output, **{"held_out": 0.1, "min_count": 2, **changes}))
    return output


def all_files(corpus: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(corpus)): file.read_bytes()
        for file in corpus.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("total", [1, 2, 5, 100])
def test_merged_parts_are_the_corpus_of_one_job(
    texts: list[Path], tmp_path: Path, total: int
) -> None:
    numbers = list(range(total))
    random.Random(total).shuffle(numbers)
    for number in numbers:
        run(texts, tmp_path / "parts", part=JobPart(number, total))
        assert not (tmp_path / "parts").exists()
    merged = run(texts, tmp_path / "parts", merge=True)
    assert all_files(merged) == all_files(run(texts, tmp_path / "whole"))
    assert not (tmp_path / "parts.partial").exists()


def test_parts_of_other_numbers_complete_each_other(texts: list[Path], tmp_path: Path) -> None:
    for part in (JobPart(0, 2), JobPart(1, 3), JobPart(5, 6), JobPart(3, 6)):
        run(texts, tmp_path / "parts", part=part)
    merged = run(texts, tmp_path / "parts", merge=True)
    assert all_files(merged) == all_files(run(texts, tmp_path / "whole"))


def test_missing_parts_are_named_and_can_be_tokenized_here(
    texts: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="no tokenized blocks; run the parts first, with --part"):
        run(texts, tmp_path / "parts", merge=True)
    for number in (0, 2):
        run(texts, tmp_path / "parts", part=JobPart(number, 3))
    message = r"3 of 8 blocks are not tokenized \(1, 4, 7\); run their parts again"
    with pytest.raises(RunError, match=message):
        run(texts, tmp_path / "parts", merge=True)
    with pytest.raises(RunError, match="interrupted job; resume it with --resume"):
        run(texts, tmp_path / "parts")
    completed = run(texts, tmp_path / "parts", resume=True)
    assert all_files(completed) == all_files(run(texts, tmp_path / "whole"))


def test_a_part_resumes_where_it_was(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized = list[int]()
    original = TokenizedBlock.of

    def failing(block: Any, tokenizer: Any) -> TokenizedBlock:
        tokenized.append(block.number)
        if len(tokenized) == 3:
            raise OSError(28, "disk full")
        return original(block, tokenizer)

    monkeypatch.setattr(TokenizedBlock, "of", failing)
    with pytest.raises(RunError, match="run the same command again"):
        run(texts, tmp_path / "parts", part=JobPart(1, 2))
    run(texts, tmp_path / "parts", part=JobPart(1, 2))
    assert tokenized == [1, 3, 5, 5, 7]


@pytest.mark.parametrize("change", ["content", "order", "number"])
def test_a_part_of_another_text_is_refused(texts: list[Path], tmp_path: Path, change: str) -> None:
    run(texts, tmp_path / "parts", part=JobPart(0, 2))
    if change == "content":
        texts[2].write_text(texts[2].read_text() + "one more\n")
    other = {"content": texts, "order": [texts[1], texts[0], texts[2]], "number": texts[:2]}[change]
    name = {"content": "c.txt", "order": "b.txt.gz", "number": "the number of files"}[change]
    for changes in ({"part": JobPart(1, 2)}, {"merge": True}):
        with pytest.raises(RunError, match=f"{name} is not the one that the other parts read"):
            run(other, tmp_path / "parts", **changes)


def test_a_change_between_the_samples_is_found(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_framework.corpus.blocks._SAMPLE_BYTES", 10)
    for number in (0, 1):
        run(texts, tmp_path / "parts", part=JobPart(number, 2))
    content = texts[0].read_bytes()
    texts[0].write_bytes(content[:1500] + content[1500:].replace(b"u", b"x", 1))
    for changes in ({"part": JobPart(1, 2)}, {"merge": True}):
        with pytest.raises(RunError, match="the text is not the one"):
            run(texts, tmp_path / "parts", **changes)
    run(texts, tmp_path / "parts", part=JobPart(0, 2))  # its blocks are the same


def test_a_part_with_another_tokenizer_is_refused(texts: list[Path], tmp_path: Path) -> None:
    run(texts, tmp_path / "parts", part=JobPart(0, 2))
    for changes in ({"part": JobPart(1, 2)}, {"merge": True}):
        with pytest.raises(
            RunError, match=r"was 'whitespace' and is 'characters'; use the same, or remove .*parts"
        ):
            run(texts, tmp_path / "parts", tokenizer="characters", **changes)


def test_a_part_with_an_unknown_tokenizer_writes_nothing(texts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="whitespase"):
        run(texts, tmp_path / "parts", part=JobPart(0, 2), tokenizer="whitespase")
    assert not (tmp_path / "parts.partial").exists()


def test_advice_about_a_part_has_no_flag_that_a_part_refuses(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> Iterator[Any]:
        raise BrokenProcessPool
        yield

    with monkeypatch.context() as patch:
        patch.setattr(tokenize, "_results", killed)
        with pytest.raises(RunError, match="run the same command again, but with fewer"):
            run(texts, tmp_path / "parts", part=JobPart(0, 2), num_processes=2)
    (tmp_path / "parts.partial/done-0-of-2.jsonl").write_text("{}\n")
    with pytest.raises(RunError, match=r"damaged .*; remove .*parts\.partial to start all parts"):
        run(texts, tmp_path / "parts", part=JobPart(0, 2))


def test_text_is_fetched_before_other_parts_are_locked_out(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(file: Path) -> str:
        with FileLock(tmp_path / ".parts.partial.lock").acquire(timeout=0):
            return file.name

    monkeypatch.setattr(tokenized_blocks, "sample_digest", digest)
    run(texts, tmp_path / "parts", part=JobPart(0, 2))


def test_nothing_is_written_while_others_write(texts: list[Path], tmp_path: Path) -> None:
    part = JobPart(0, 2)
    run(texts, tmp_path / "parts", part=part)
    with FileLock(tmp_path / "parts.partial/.part-0-of-2.lock"):
        with pytest.raises(RunError, match=r"another job is writing part 0/2$"):
            run(texts, tmp_path / "parts", part=part)
        for changes in ({"merge": True}, {"resume": True}, {"force": True}):
            with pytest.raises(RunError, match="another job is writing part 0/2; wait for it"):
                run(texts, tmp_path / "parts", **changes)
        run(texts, tmp_path / "parts", part=JobPart(1, 2))
    with (
        FileLock(tmp_path / ".parts.partial.lock"),
        pytest.raises(RunError, match="another job is writing here"),
    ):
        run(texts, tmp_path / "parts", part=part)


def test_a_pattern_does_not_match_the_files_of_the_job_itself(
    texts: list[Path], tmp_path: Path
) -> None:
    pattern = [tmp_path / "**" / "*"]
    for number in (0, 1):
        run(pattern, tmp_path / "parts", part=JobPart(number, 2))
    merged = run(pattern, tmp_path / "parts", merge=True)
    assert all_files(merged) == all_files(run(texts, tmp_path / "whole"))


def test_a_part_overwrites_nothing(texts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="remove --force"):
        run(texts, tmp_path / "corpus", part=JobPart(0, 2), force=True)
    with pytest.raises(RunError, match="needs files whose blocks several jobs can read, not -"):
        run([Path("-")], tmp_path / "corpus", part=JobPart(0, 2))
    run(texts, tmp_path / "corpus")
    with pytest.raises(RunError, match="already exists; remove it"):
        run(texts, tmp_path / "corpus", part=JobPart(0, 2))
    assert not (tmp_path / "corpus.partial").exists()


def test_a_merge_continues_after_it_was_killed(
    texts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1):
        run(texts, tmp_path / "parts", part=JobPart(number, 2))

    def killed(*_: Any, **__: Any) -> None:
        raise SystemExit

    for name in ("corpus.prepare.assemble", "io.resumable_output.remove_folder"):
        with monkeypatch.context() as patch:
            patch.setattr(f"elmo_framework.{name}", killed)
            with pytest.raises(SystemExit):
                run(texts, tmp_path / "parts", merge=True)
    merged = run(texts, tmp_path / "parts", merge=True)
    assert all_files(merged) == all_files(run(texts, tmp_path / "whole"))
    with pytest.raises(RunError, match="already exists; pass --force"):
        run(texts, tmp_path / "parts", merge=True)


def test_error_of_a_part_has_the_line_of_the_file(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"0123456789\n" * 150 + b"bad \xff\n")
    run([text], tmp_path / "parts", part=JobPart(0, 2))
    with pytest.raises(DataError, match=r"text\.txt:151"):
        run([text], tmp_path / "parts", part=JobPart(1, 2))


def test_error_of_a_tokenizer_has_the_line_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(_: object, line: str) -> list[str]:
        if line == "bad":
            raise ValueError("too long")
        return line.split()

    monkeypatch.setattr(WhitespaceTokenizer, "words", words)
    (tmp_path / "text.txt").write_text("0123456789\n" * 150 + "bad\n")
    with pytest.raises(DataError, match=r"text\.txt:151: too long"):
        run([tmp_path / "text.txt"], tmp_path / "parts", part=JobPart(1, 2))
