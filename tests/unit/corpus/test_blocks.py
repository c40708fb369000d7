from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.job_part import JobPart
from elmo_framework.corpus.blocks import Block, read_blocks, text_files
from elmo_framework.errors import DataError

LINES = [f"line {number}\n" for number in range(40)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"]
    for path, lines in zip(paths, [LINES[:3], LINES[3:38], LINES[38:]], strict=True):
        path.write_text("".join(lines))
    return paths


def text(blocks: list[Block]) -> str:
    return b"".join(piece.content for block in blocks for piece in block.ranges).decode()


def test_blocks_are_whole_lines_of_all_files(files: list[Path]) -> None:
    blocks = list(read_blocks(files, 50))
    assert text(blocks) == "".join(LINES)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert all(piece.content.endswith(b"\n") for block in blocks for piece in block.ranges)
    assert all(50 <= sum(len(p.content) for p in block.ranges) < 110 for block in blocks[:-1])


def test_a_piece_knows_its_file_and_its_first_line(files: list[Path]) -> None:
    for block in read_blocks(files, 50):
        for piece in block.ranges:
            lines = piece.path.read_bytes().splitlines(keepends=True)[piece.first_line - 1 :]
            assert b"".join(lines).startswith(piece.content)


def test_blocks_add_up_to_the_bytes_on_the_disk(files: list[Path], tmp_path: Path) -> None:
    packed = tmp_path / "d.txt.gz"
    packed.write_bytes(gzip.compress("".join(LINES).encode()))
    blocks = list(read_blocks([*files, packed], 50))
    on_disk = sum(file.stat().st_size for file in [*files, packed])
    assert sum(block.num_bytes for block in blocks) == on_disk


@pytest.mark.parametrize("total", [2, 3, 50])
@pytest.mark.parametrize("size", [1, 8, 50, 10_000])
def test_parts_have_the_blocks_of_one_reader(
    files: list[Path], tmp_path: Path, total: int, size: int
) -> None:
    packed = tmp_path / "d.txt.GZ"
    packed.write_bytes(gzip.compress("".join(LINES).encode()))
    (tmp_path / "e.txt").write_text("no end\n" + "x" * 99)
    every = [*files, packed, tmp_path / "e.txt"]
    parts = [list(read_blocks(every, size, JobPart(part, total))) for part in range(total)]
    assert all(block.number % total == part for part in range(total) for block in parts[part])
    union = sorted((block for part in parts for block in part), key=lambda block: block.number)
    expected = list(read_blocks(every, size))
    assert [block.number for block in union] == [block.number for block in expected]
    assert [block.digest for block in union] == [block.digest for block in expected]
    assert sum(block.num_bytes for block in union) == sum(block.num_bytes for block in expected)


def test_parts_do_not_read_the_blocks_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{number:099}\n" for number in range(1000)))

    class Counting(io.FileIO):
        num_read = 0

        def readinto(self, buffer: Any) -> int:
            number = super().readinto(buffer)
            Counting.num_read += number
            return number

    def opened(self: Path, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(Counting(self), 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", opened)
        blocks = list(read_blocks([path], 10_000, JobPart(3, 10)))
    assert [block.number for block in blocks] == [3]
    assert Counting.num_read < 15_000


def test_line_of_an_invalid_byte_is_exact_in_a_part(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 10 + b"bad \xff\n")
    (block,) = read_blocks([path], 25, JobPart(2, 3))
    assert block.ranges[0].first_line == 11


def test_a_last_line_without_an_end_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb")
    assert text(list(read_blocks([tmp_path / "a.txt"], 2))) == "a\nb"


def test_digest_depends_on_the_lines(files: list[Path]) -> None:
    digests = [block.digest for block in read_blocks(files, 50)]
    assert len(set(digests)) == len(digests)
    assert digests == [block.digest for block in read_blocks(files, 50)]


def test_folders_and_patterns_mean_their_files(files: list[Path], tmp_path: Path) -> None:
    assert text_files([tmp_path]) == files
    assert text_files([tmp_path / "[bc].txt", Path("-")]) == [*files[1:], Path("-")]
    with pytest.raises(DataError, match="not found, as a file, folder or pattern"):
        text_files([tmp_path / "x*.txt"])
