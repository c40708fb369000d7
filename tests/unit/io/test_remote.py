from __future__ import annotations

import gzip
import pickle
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from elmo_framework.data.formats.compressed import data_suffix
from elmo_framework.data.formats.text_files import data_files, read_lines, require_data
from elmo_framework.data.formats.word_vector_files import read_vectors
from elmo_framework.errors import DataError, RunError
from elmo_framework.io.download import cached_path, offline
from elmo_framework.io.outputs import Input, Output, check_outputs
from elmo_framework.io.remote import RemotePath, archive_path, as_path
from tests.unit.io.test_download import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def lines(url: str) -> list[str]:
    return [line for file in data_files(as_path(url)) for _, line in read_lines(file)]


@pytest.mark.parametrize(
    "url", ["https://host/a//b/./c.txt?x=1//2", "s3://bucket/a/*.txt", "(gs://a//b.zip)#c.txt"]
)
def test_a_url_is_preserved_as_written(url: str) -> None:
    path = as_path(url)
    assert str(path) == str(pickle.loads(pickle.dumps(path))) == str(path.absolute()) == url
    assert as_path(path) is path


def test_url_of_a_local_file_is_an_ordinary_path() -> None:
    assert as_path("file:///data/a%20b.txt") == Path("/data/a b.txt")
    assert as_path("file://localhost/data/a.txt") == Path("/data/a.txt")
    assert type(as_path("data/a.txt")) is type(Path())


@pytest.mark.parametrize("url", ["file://data.txt", "file://data/a.txt", "file://"])
def test_url_of_a_relative_file_is_refused(url: str) -> None:
    with pytest.raises(DataError, match="not the URL of a local file; write file:///absolute"):
        as_path(url)


def test_names_and_suffixes_ignore_the_query() -> None:
    path = as_path("https://host/data/train.csv.gz?download=1/2")
    assert (path.name, path.suffix, data_suffix(path)) == ("train.csv.gz", ".gz", ".csv")
    assert as_path("memory://data/pos/1.txt").parent.name == "pos"


def test_archive_of_a_url_is_a_url() -> None:
    archive = archive_path(as_path("(https://host//glove.zip)#glove.50d.txt"))
    assert str(archive.file) == "https://host//glove.zip"
    assert isinstance(archive.file, RemotePath)
    assert archive.inner == "glove.50d.txt"


def test_files_folders_and_patterns_are_read(memory: MemoryFileSystem) -> None:
    memory.pipe("/text/a.txt", b"one\ntwo\n")
    memory.pipe("/text/b.txt.gz", gzip.compress(b"three\n"))
    memory.pipe("/text/.hidden", b"no\n")
    assert lines("memory://text/a.txt") == ["one", "two"]
    assert lines("memory://text") == lines("memory://text/*.txt*") == ["one", "two", "three"]


def test_a_changed_file_is_copied_again(memory: MemoryFileSystem) -> None:
    memory.pipe("/a.txt", b"before\n")
    assert lines("memory://a.txt") == ["before"]
    memory.pipe("/a.txt", b"after\n")
    assert lines("memory://a.txt") == ["after"]


def test_an_unchanged_file_is_copied_once(memory: MemoryFileSystem) -> None:
    memory.pipe("/a.txt", b"one\n")
    lines("memory://a.txt")
    cached_path("memory://a.txt").write_bytes(b"copy\n")
    assert lines("memory://a.txt") == ["copy"]


def test_offline_reads_the_copy_only(memory: MemoryFileSystem) -> None:
    memory.pipe("/a.txt", b"before\n")
    memory.pipe("/b.txt", b"b\n")
    lines("memory://a.txt")
    memory.pipe("/a.txt", b"after\n")
    with offline():
        assert lines("memory://a.txt") == ["before"]
        with pytest.raises(DataError, match=r"^memory://b\.txt: not copied: --offline or ELMO_OFF"):
            lines("memory://b.txt")


def test_messages_name_the_url_and_the_line(memory: MemoryFileSystem) -> None:
    memory.pipe("/a.txt", b"one\n\xff\n")
    with pytest.raises(DataError, match=r"^memory://a\.txt:2: not valid UTF-8 text"):
        lines("memory://a.txt")
    memory.pipe("/a.txt.gz", gzip.compress(b"one\n" * 99)[:-9])
    with pytest.raises(DataError, match=r"^memory://a\.txt.gz: cannot be read: Compressed file"):
        lines("memory://a.txt.gz")


def test_http_is_downloaded_once(server: Server) -> None:
    server.content = gzip.compress(b"one\ntwo\n")
    url = f"http://127.0.0.1:{server.server_port}/data/text.txt.gz?version=*"
    assert lines(url) == lines(url) == ["one", "two"]
    assert server.paths.count("/data/text.txt.gz?version=*") == 1


def test_a_missing_file_on_a_server_is_reported(server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/missing.txt"
    with pytest.raises(DataError, match=f"^{url}: the server answered 404 Not Found"):
        require_data(as_path(url))
    require_data(as_path(url.replace("missing", "no_head")))
    with offline(), pytest.raises(DataError, match="--offline or ELMO_OFFLINE is set"):
        require_data(as_path(url.replace("missing", "text")))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://a.txt", "it does not exist"),
        ("memory://*.txt", "no file matches"),
        ("nothing://a.txt", "unknown protocol 'nothing'; choose from"),
        ("s3://bucket/a.txt", "the driver of s3:// is not installed: Install s3fs"),
        ("gs://bucket/a.txt", "the driver of gs:// is not installed: .*gcsfs"),
    ],
)
def test_an_unreadable_url_reports_the_reason(
    url: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for driver in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(DataError, match=message):
        data_files(as_path(url))


def test_vectors_are_read_from_a_remote_archive(memory: MemoryFileSystem, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.writestr("glove.2d.txt", "the 1 2\n")
        archive.writestr("glove.3d.txt", "the 1 2 3\n")
    memory.pipe("/glove.zip", (tmp_path / "glove.zip").read_bytes())
    path = as_path("(memory://glove.zip)#glove.3d.txt")
    assert read_vectors(path, dim=3, wanted=["the"])["the"].tolist() == [1, 2, 3]


def test_outputs_are_local_and_inputs_not_copied(memory: MemoryFileSystem, tmp_path: Path) -> None:
    remote = as_path("memory://input.txt")
    with pytest.raises(
        RunError, match=r"^--output-file memory://input.txt is a URL; choose a local"
    ):
        check_outputs([Output(remote, "--output-file")], [])
    memory.pipe("/input.txt", b"")
    check_outputs([Output(tmp_path / "a.txt", "--output-file")], [Input(remote, "FILE")])
    assert not cached_path("memory://input.txt").exists()
