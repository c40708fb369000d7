"""Archives: what is written is read back, and nothing else is."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import DataError
from elmo_framework.io import archives
from elmo_framework.io.archives import is_archive, is_from_elsewhere, local_folder, write_archive

Member = tuple[tarfile.TarInfo, bytes]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "weights").write_bytes(b"numbers" * 1000)
    files: dict[str, Path | bytes] = {"a/b.txt": b"text", "weights": tmp_path / "weights"}
    write_archive(files, tmp_path / "model.tar.gz")
    return tmp_path / "model.tar.gz"


def member(name: str, content: bytes = b"", **properties: Any) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in properties.items():
        setattr(info, key, value)
    return info, content


def manifest(contents: dict[str, bytes], **changes: Any) -> Member:
    members = {
        name: {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        for name, content in contents.items()
    }
    written = {"format": 1, "elmo_framework": "9.9", "files": members, **changes}
    return member("archive.json", json.dumps(written).encode())


def tar_file(path: Path, members: Sequence[Member]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


def test_files_are_read_back(archive: Path, cache: Path) -> None:
    folder = local_folder(archive)
    assert is_archive(archive)
    assert folder.is_relative_to(cache)
    assert (folder / "a/b.txt").read_text() == "text"
    assert (folder / "weights").read_bytes() == b"numbers" * 1000
    assert is_from_elsewhere(folder / "a")
    assert not is_from_elsewhere(archive.parent)
    assert local_folder(archive) == folder
    assert local_folder(archive.parent) == archive.parent


def test_equal_files_give_equal_bytes(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").touch()
    files: dict[str, Path | bytes] = {"weights": tmp_path / "weights", "a/b.txt": b"text"}
    write_archive(files, tmp_path / "other.tar.gz")
    assert archive.read_bytes() == (tmp_path / "other.tar.gz").read_bytes()
    assert archive.read_bytes()[4:8] == bytes(4)  # no time in the header of gzip


def test_an_older_format_is_read_and_a_newer_refused(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = tar_file(archive.with_name("newer.tar.gz"), [manifest({}, format=archives.FORMAT + 1)])
    with pytest.raises(DataError, match=r"format 2, written by elmo-framework 9\.9; .* up to 1"):
        local_folder(newer)
    monkeypatch.setattr(archives, "FORMAT", 2)
    assert (local_folder(archive) / "weights").is_file()


SOUND = {"a": b"1"}
HOSTILE: dict[str, tuple[list[Member], str]] = {
    "no manifest": ([member("a", b"1")], "it has no archive.json; elmo import makes a run"),
    "manifest of another kind": ([member("archive.json", b"[]")], "archive.json is damaged"),
    "manifest without sizes": ([manifest({}, files={"a": {}})], "archive.json is damaged"),
    "outside": ([manifest({"../a": b"1"})], r"'\.\./a' would be outside"),
    "absolute": ([manifest({"/a": b"1"})], "'/a' would be outside"),
    "in a file": ([manifest({"a": b"1", "a/b": b"1"})], "'a' is a file, and others are in it"),
    "long name": ([manifest({"a/" + 128 * "ß": b"1"})], r"'a/ßß.*ß'\.\.\. is too long"),
    "drive": ([manifest({"c:\\a": b"1"})], "would be outside"),
    "too large": (
        [manifest({}, files={"a": {"bytes": 1 << 31, "sha256": ""}})],
        "2,147,483,648 bytes",
    ),
    "negative size": (
        [manifest(SOUND, files={"a": {"bytes": -1, "sha256": ""}})],
        "archive.json is damaged",
    ),
    "unlisted": ([manifest(SOUND), member("b", b"1")], "'b' is not listed"),
    "outside and unlisted": ([manifest(SOUND), member("../b", b"1")], "is not listed"),
    "twice": ([manifest(SOUND), member("a", b"1"), member("a", b"1")], "'a' is twice"),
    "missing": ([manifest(SOUND)], "'a' is missing"),
    "other content": ([manifest(SOUND), member("a", b"2")], "is not the file that was written"),
    "longer": ([manifest(SOUND), member("a", b"11")], "is not the file that was written"),
    "link": (
        [manifest({"a": b""}), member("a", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
        "is not the file that was written",
    ),
    "hard link": (
        [manifest({"a": b""}), member("a", type=tarfile.LNKTYPE, linkname="archive.json")],
        "is not the file that was written",
    ),
    "device": (
        [manifest({"a": b""}), member("a", type=tarfile.CHRTYPE)],
        "is not the file that was written",
    ),
}


@pytest.mark.parametrize(("members", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_members_are_refused(
    tmp_path: Path, cache: Path, members: list[Member], message: str
) -> None:
    path = tar_file(tmp_path / "model.tar.gz", members)
    with pytest.raises(DataError, match=message) as caught:
        local_folder(path)
    assert caught.value.path == path
    assert not [file for file in cache.rglob("*") if file.suffix != ".lock" and file.is_file()]


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _changed(content: bytes) -> bytes:
    return content[:-100] + b"\0" * 50 + content[-50:]


def test_a_config_in_place_of_a_run_is_named(tmp_path: Path) -> None:
    config = tmp_path / "ner.jsonnet"
    config.write_text("{}")
    with pytest.raises(DataError, match="a config, not a run; train it first, with elmo train"):
        local_folder(config)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut, "damaged|neither a folder nor"),
        (_changed, "damaged|neither a folder nor|not the file"),
        (lambda _: b"text", "neither a folder nor an archive"),
        (lambda _: gzip.compress(b"text"), "neither a folder nor an archive"),
    ],
)
def test_a_damaged_file_is_a_data_error(
    archive: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(DataError, match=message):
        local_folder(archive)
