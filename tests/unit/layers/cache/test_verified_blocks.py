"""Each block that is read is verified once, and no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from elmo_framework.errors import DataError
from elmo_framework.layers.cache import verified_blocks
from elmo_framework.layers.cache.verified_blocks import (
    VerifiedBlocks,
    checksums_of,
    num_blocks,
    verify_blocks,
)

CONTENT = bytes(range(95))


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_blocks, "BLOCK_BYTES", 10)


def blocks_of(content: bytes = CONTENT, name: str = "a") -> VerifiedBlocks:
    """The blocks of a file that may have changed since its checksums were taken."""
    return VerifiedBlocks(Path(name), memoryview(content), checksums_of(memoryview(CONTENT)))


def changed(*places: int) -> bytes:
    content = bytearray(CONTENT)
    for place in places:
        content[place] ^= 1
    return bytes(content)


@pytest.mark.parametrize(("num_bytes", "expected"), [(0, 0), (1, 1), (10, 1), (11, 2), (95, 10)])
def test_last_block_may_be_shorter(num_bytes: int, expected: int) -> None:
    assert num_blocks(num_bytes) == expected
    assert len(checksums_of(memoryview(CONTENT[:num_bytes]))) == expected


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(0, 1)], [0]),
        ([(0, 10)], [0]),
        ([(9, 11)], [0, 1]),
        ([(12, 15), (14, 19), (31, 52)], [1, 3, 4, 5]),
        ([(90, 95)], [9]),
        ([(0, 95)], list(range(10))),
        ([], []),
    ],
)
def test_pending_blocks_are_those_that_ranges_touch(
    ranges: list[tuple[int, int]], expected: list[int]
) -> None:
    begins, ends = np.array(ranges, np.int64).reshape(-1, 2).T
    blocks = blocks_of()
    assert blocks.pending(begins, ends) == expected
    blocks.verify(expected[:1])
    assert blocks.pending(begins, ends) == expected[1:]


def test_changed_block_is_named_and_stays_pending() -> None:
    blocks = blocks_of(changed(25))
    with pytest.raises(DataError, match="block 2 of a has changed"):
        blocks.verify(range(10))
    assert blocks.pending(np.array([0]), np.array([95])) == list(range(2, 10))


def test_damage_is_reported_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_blocks, "_BLOCKS_AT_ONCE", 3)
    whole, damaged = blocks_of(), blocks_of(changed(45, 91), "b")
    found = verify_blocks([(whole, range(10)), (damaged, range(10))])
    assert found == {Path("b"): "block 4 of b has changed"}
    assert whole.pending(np.array([0]), np.array([95])) == []
    assert verify_blocks([]) == {}
