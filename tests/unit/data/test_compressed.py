from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import read_lines

TEXT = "".join(f"line {number} ä\n" for number in range(2000))
LINES = list(enumerate(TEXT.splitlines(), start=1))
FORMATS = {".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", FORMATS)
def test_compressed_lines_are_read_as_plain_ones(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(FORMATS[suffix](TEXT.encode()))
    assert list(read_lines(path)) == LINES


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: b"no" + content])
def test_a_damaged_file_is_named(
    tmp_path: Path, suffix: str, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(damage(FORMATS[suffix](TEXT.encode())))
    with pytest.raises(DataError, match=rf"a\.txt\{suffix}: cannot be read: "):
        list(read_lines(path))


class StandInError(Exception):
    """What the stand-in raises for a damaged file."""


class StandInFrame:
    """A frame of a format in which `[` begins it and `]` ends it."""

    def __init__(self) -> None:
        self.eof, self.unused_data = False, b""

    def decompress(self, content: bytes) -> bytes:
        if content.startswith(b"!"):
            raise StandInError("damaged")
        inside, end, self.unused_data = content.partition(b"]")
        self.eof = bool(end)
        return inside.lstrip(b"[")


@pytest.fixture
def zstandard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not among those that the tests need: a format of our own takes its place."""
    decompressor = SimpleNamespace(decompressobj=StandInFrame)
    module = SimpleNamespace(ZstdDecompressor=lambda: decompressor, ZstdError=StandInError)
    monkeypatch.setitem(sys.modules, "zstandard", module)  # type: ignore[arg-type]


@pytest.mark.usefixtures("zstandard")
def test_a_zst_file_may_hold_several_frames(tmp_path: Path) -> None:
    text = TEXT.encode()
    (tmp_path / "a.zst").write_bytes(b"[" + text[:17] + b"][" + text[17:] + b"]")
    assert list(read_lines(tmp_path / "a.zst")) == LINES


@pytest.mark.usefixtures("zstandard")
@pytest.mark.parametrize("content", [b"[torn", b"!"])
def test_a_damaged_zst_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zst").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.zst: cannot be read: "):
        list(read_lines(tmp_path / "a.zst"))


def test_a_zst_file_without_the_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"")
    with pytest.raises(DataError, match=r"a\.zst: .*pip install 'elmo-framework\[zstandard\]'"):
        list(read_lines(tmp_path / "a.zst"))
