import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from elmo_framework.data.formats import compressed
from elmo_framework.data.formats.packed_files import open_packed
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError

CONTENT = b"the 1 2\nof 3 4\n"


def packed(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    path = folder / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/", "")
            for inner, content in members.items():
                archive.writestr(inner, content)
        return path
    with tarfile.open(path, f"w:{path.suffix[1:] if path.suffix != '.tar' else ''}") as archive:
        for inner, content in members.items():
            entry = tarfile.TarInfo(inner)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def content(path: Path) -> bytes:
    with open_packed(path) as (_, file):
        return b"".join(file)


def message(path: Path) -> str:
    with pytest.raises(DataError) as raised:
        content(path)
    return str(raised.value)


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("txt", bytes),
        ("gz", gzip.compress),
        ("GZ", gzip.compress),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
    ],
)
def test_a_file_is_unpacked_by_its_ending(tmp_path, ending, pack):
    path = tmp_path / f"vectors.{ending}"
    path.write_bytes(pack(CONTENT))

    assert content(path) == CONTENT


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
def test_an_archive_of_one_file_is_that_file(tmp_path, name):
    assert content(packed(tmp_path, name, {"sub/x.txt": CONTENT})) == CONTENT


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_one_of_several_files_of_an_archive_is_named(tmp_path, name):
    path = packed(tmp_path, name, {"x.txt": b"x", "y.txt.gz": gzip.compress(CONTENT)})

    assert content(tmp_path / f"({name})#x.txt") == b"x"
    assert content(Path(f"({path})#y.txt.gz")) == CONTENT
    assert message(path) == (
        f"{path}: this archive has 2 files; pass one as ({path})#...; choose from x.txt, y.txt.gz."
    )
    assert message(Path(f"({path})#x.text")) == (
        f"{path}: no 'x.text' in this archive; choose from x.txt, y.txt.gz. Did you mean 'x.txt'?"
    )


def test_inner_name_of_a_plain_file_is_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(CONTENT)

    assert (
        message(tmp_path / "(x.txt)#y.txt")
        == f"{path}: not an archive, so it does not contain 'y.txt'"
    )


@pytest.mark.parametrize(
    "name", ["a.gz", "a.bz2", "a.xz", "a.zip", "a.tar", "a.tar.gz", "absent.txt"]
)
def test_unreadable_file_is_named(tmp_path, name):
    if name.startswith("a."):
        (tmp_path / name).write_bytes(b"no such thing")

    assert message(tmp_path / name).startswith(f"{tmp_path / name}: cannot be read: ")


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (8, 1, "File 'x.txt' is encrypted, password required for extraction"),
        (10, 99, "That compression method is not supported"),
        (6, 99, "zip file version 9.9"),
    ],
)
def test_a_zip_that_cannot_be_unpacked_is_named(tmp_path, place, value, reason):
    path = packed(tmp_path, "a.zip", {"x.txt": CONTENT})
    changed = bytearray(path.read_bytes())
    changed[changed.rindex(b"PK\1\2") + place] = value  # in the entry of the list at the end
    path.write_bytes(changed)

    assert message(path) == f"{path}: cannot be read: {reason}"


def test_a_tar_is_unpacked_by_each_compression(tmp_path):
    plain = packed(tmp_path, "a.tar", {"x.txt": CONTENT}).read_bytes()
    (tmp_path / "b.tar.zst").write_bytes(zstd.compress(plain))
    (tmp_path / "c.tgz").write_bytes(gzip.compress(plain))

    assert content(tmp_path / "b.tar.zst") == content(tmp_path / "(c.tgz)#x.txt") == CONTENT


def test_truncated_file_is_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT * 100)[:-20])

    assert message(path).startswith(f"{path}: cannot be read: ")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("v.bin", "v.bin"),
        ("v.bin.gz", "v.bin"),
        ("one.zip", "GoogleNews.bin"),
        ("one.tar", "GoogleNews.bin"),
        ("(one.zip)#GoogleNews.bin.gz", "GoogleNews.bin"),
    ],
)
def test_name_is_that_of_the_packed_file(tmp_path, path, name):
    (tmp_path / "v.bin").write_bytes(CONTENT)
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(CONTENT))
    for archive in ("one.zip", "one.tar"):
        packed(tmp_path, archive, {"GoogleNews.bin.gz": gzip.compress(CONTENT)})

    with open_packed(tmp_path / path) as (found, file):
        assert (found, file.read()) == (name, CONTENT)


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "_MIN_LIMIT", 1 << 16)


BOMB = bytes(1 << 20)


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
        ("zst", zstd.compress),
    ],
)
@pytest.mark.usefixtures("small_limit")
def test_a_line_that_fills_the_memory_is_not_unpacked(tmp_path, ending, pack):
    path = tmp_path / f"text.{ending}"
    path.write_bytes(pack(BOMB))
    expected = f"{path}: more than {max(1 << 16, 200 * path.stat().st_size):,} bytes are packed in"
    assert message(path).startswith(expected)
    with pytest.raises(DataError, match="bytes are packed in this file"):
        list(read_lines(path))


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz", "bomb.tar.xz"])
@pytest.mark.usefixtures("small_limit")
def test_an_archive_of_more_than_a_text_is_not_unpacked(tmp_path, name):
    path = packed(tmp_path, name, {"vectors.txt": BOMB})
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("vectors.txt", BOMB)
    assert message(path).startswith(f"{path}: more than ")


@pytest.mark.usefixtures("small_limit")
def test_member_after_a_bomb_is_not_read(tmp_path):
    path = packed(tmp_path, "bomb.tar.gz", {"bomb": BOMB, "vectors.txt": CONTENT})
    assert "bytes are packed in this file" in message(tmp_path / f"({path.name})#vectors.txt")


@pytest.mark.usefixtures("small_limit")
def test_a_text_that_is_packed_well_is_unpacked(tmp_path):
    path = tmp_path / "text.xz"
    path.write_bytes(lzma.compress(CONTENT * 3000))
    assert content(path) == CONTENT * 3000


@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
@pytest.mark.parametrize("inner", ["../outside.txt", "/tmp/outside.txt"])
def test_a_member_outside_is_read_and_written_nowhere(tmp_path, name, inner):
    (tmp_path / "folder").mkdir()
    path = packed(tmp_path / "folder", name, {inner: CONTENT, "other": b""})
    before = sorted(tmp_path.rglob("*"))
    assert content(path.parent / f"({name})#{inner}") == CONTENT
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_an_archive_leads_nowhere(tmp_path):
    (tmp_path / "secret.txt").write_bytes(CONTENT)
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo("vectors.txt")
        entry.type, entry.linkname = tarfile.SYMTYPE, str(tmp_path / "secret.txt")
        archive.addfile(entry)
    assert "no 'vectors.txt' in this archive" in message(tmp_path / "(a.tar)#vectors.txt")
