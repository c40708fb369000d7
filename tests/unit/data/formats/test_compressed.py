from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = "".join(f"line {number} ä\n" for number in range(2000))
LINES = list(enumerate(TEXT.splitlines(), start=1))
FORMATS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_compressed_lines_are_read_as_plain_ones(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(FORMATS[suffix](TEXT.encode()))
    assert list(read_lines(path)) == LINES


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_suffix_may_be_in_upper_case(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.CSV{suffix.upper()}"
    path.write_bytes(FORMATS[suffix](TEXT.encode()))
    assert list(read_lines(path)) == LINES
    assert data_suffix(path) == ".csv"


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: b"no" + content])
def test_a_damaged_file_is_named(
    tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(damage(FORMATS[suffix](TEXT.encode())))
    with pytest.raises(DataError, match=rf"a\.txt\{suffix}: cannot be read: "):
        list(read_lines(path))


def test_a_compressed_file_may_hold_several_parts(tmp_path: Path) -> None:
    content = TEXT.encode()
    for suffix, compress in FORMATS.items():
        path = tmp_path / f"a.txt{suffix}"
        path.write_bytes(compress(content[:17]) + compress(content[17:]))
        assert list(read_lines(path)) == LINES
