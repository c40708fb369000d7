from __future__ import annotations

import gzip
from pathlib import Path

import pytest

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
    return b"".join(piece.content for block in blocks for piece in block.pieces).decode()


def test_blocks_are_whole_lines_of_all_files(files: list[Path]) -> None:
    blocks = list(read_blocks(files, 50))
    assert text(blocks) == "".join(LINES)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert all(piece.content.endswith(b"\n") for block in blocks for piece in block.pieces)
    assert all(50 <= sum(len(p.content) for p in block.pieces) < 110 for block in blocks[:-1])


def test_a_piece_knows_its_file_and_its_first_line(files: list[Path]) -> None:
    for block in read_blocks(files, 50):
        for piece in block.pieces:
            lines = piece.path.read_bytes().splitlines(keepends=True)[piece.first_line - 1 :]
            assert b"".join(lines).startswith(piece.content)


def test_blocks_add_up_to_the_bytes_on_the_disk(files: list[Path], tmp_path: Path) -> None:
    packed = tmp_path / "d.txt.gz"
    packed.write_bytes(gzip.compress("".join(LINES).encode()))
    blocks = list(read_blocks([*files, packed], 50))
    on_disk = sum(file.stat().st_size for file in [*files, packed])
    assert sum(block.num_bytes for block in blocks) == on_disk


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
