import errno
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from elmo_framework.io import files
from elmo_framework.io.files import (
    path_hint,
    remove,
    remove_folder,
    replacing,
    require_file_size,
    write_text,
    writing,
)
from elmo_framework.io.remote import ArchivePath, archive_path


def test_a_file_is_replaced_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("old")
    with writing(path) as file:
        file.write("né")
        assert path.read_text() == "old"
    assert path.read_bytes() == "né".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text("old")
    with pytest.raises(TypeError), writing(path) as file:
        file.writelines(["new", 3])  # type: ignore[list-item]
    assert [held.read_text() for held in tmp_path.iterdir()] == ["old"]


def test_writing_refuses_to_replace_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "scores"
    (folder / "inner").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as caught, writing(folder):
        pass
    assert caught.value.filename == str(folder)
    assert (folder / "inner").is_dir()


def test_a_device_is_written_to_and_stays() -> None:
    with writing(Path(os.devnull)) as file:
        file.write("text")
    assert Path(os.devnull).is_char_device()


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with writing(pipe) as file:
        file.write("text")
    reader.join()
    assert read == ["text"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("is_there", [True, False])
def test_the_file_behind_a_link_is_replaced(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "inner").mkdir()
    target, link = tmp_path / "inner/target", tmp_path / "link"
    if is_there:
        target.write_text("old")
    link.symlink_to("inner/target")
    with writing(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("parent", "error"), [("absent", FileNotFoundError), ("file", NotADirectoryError)]
)
def test_an_invalid_parent_is_named_as_the_caller_wrote_it(
    parent: str, error: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(error) as caught, writing(Path(parent, "scores.json")):
        pass
    assert caught.value.filename == parent


def test_a_file_can_be_read_by_whoever_reads_other_new_files(tmp_path: Path) -> None:
    usual, written = tmp_path / "usual", tmp_path / "written"
    usual.touch()
    with replacing(written) as aside:
        aside.touch(mode=0o600)
    assert written.stat().st_mode == usual.stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "private.txt"
    path.touch(mode=0o600)
    with replacing(path) as aside:
        aside.write_text("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("runs/nre", "runs/ner"),
        ("rnus/ner/log", "runs"),
        ("Runs", "runs"),
        ("runs/other", None),
        ("runs/ner", None),
        ("notes/file", None),
        ("a\0b", None),
    ],
)
def test_the_nearest_of_the_paths_that_exist_is_named(
    tmp_path: Path, given: str, near: str | None
) -> None:
    (tmp_path / "runs" / "ner").mkdir(parents=True)
    (tmp_path / "notes").touch()
    expected = "" if near is None else f" Did you mean {str(tmp_path / near)!r}?"
    assert path_hint(tmp_path / given) == expected


def test_a_folder_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    (folder / "old").mkdir(parents=True)
    with replacing(folder) as aside:
        (aside / "new").mkdir(parents=True)
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_never_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    (folder / "old").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_text(folder, "new")
    assert (folder / "old").is_dir()
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_is_removed_when_the_new_one_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seen = tmp_path / "checkpoint", list[str]()
    (folder / "old").mkdir(parents=True)

    def removing(doomed: Path) -> None:
        seen.extend(path.name for path in folder.iterdir())
        assert (doomed / "old").is_dir()
        shutil.rmtree(doomed)

    monkeypatch.setattr(files, "rmtree", removing)
    with replacing(folder) as aside:
        (aside / "new").mkdir(parents=True)
    assert seen == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


def test_a_new_folder_is_on_the_disk_before_the_old_one_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, done = tmp_path / "checkpoint", list[str]()
    (folder / "old").mkdir(parents=True)
    synchronize, rename = os.fsync, Path.replace

    def noting(descriptor: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        synchronize(descriptor)

    def renaming(path: Path, target: Path) -> Path:
        done.append(f"{path.name} -> {target.name}")
        return rename(path, target)

    def removing(doomed: Path) -> None:
        done.append(f"remove {doomed.name}")

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(Path, "replace", renaming)
    monkeypatch.setattr(files, "rmtree", removing)
    with replacing(folder) as aside:
        (aside / "inner").mkdir(parents=True)
        (aside / "inner/weights").touch()
        (aside / "progress").touch()
    assert {*done[:4]} == {
        *(str(aside), f"{aside}/inner", f"{aside}/inner/weights", f"{aside}/progress")
    }
    assert done[4:] == [
        "checkpoint -> .checkpoint.replaced",
        ".checkpoint.writing -> checkpoint",
        str(tmp_path),
        ".checkpoint.replaced -> .checkpoint.removing",
        "remove .checkpoint.removing",
    ]


def test_failure_between_renames_restores_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, rename = tmp_path / "checkpoint", Path.replace
    (folder / "old").mkdir(parents=True)

    def renaming(path: Path, target: Path) -> Path:
        if (path.name, target) == (".checkpoint.writing", folder):
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", renaming)
    with pytest.raises(KeyboardInterrupt), replacing(folder) as aside:
        (aside / "new").mkdir(parents=True)
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ([".checkpoint.replaced/old", ".checkpoint.writing/new"], ["old"]),
        ([".checkpoint.replaced/old", "checkpoint/new"], ["new"]),
        ([".checkpoint.removing/removed"], None),
    ],
)
def test_a_replacement_that_was_killed_is_settled_by_the_next(
    tmp_path: Path, left: list[str], kept: list[str] | None
) -> None:
    for name in left:
        (tmp_path / name).mkdir(parents=True)
    folder = tmp_path / "checkpoint"
    with pytest.raises(ZeroDivisionError), replacing(folder):
        raise ZeroDivisionError
    found = [path.name for path in folder.iterdir()] if folder.exists() else None
    assert found == kept
    assert not list(tmp_path.glob(".*.replaced"))
    assert not list(tmp_path.glob(".*.writing"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_error_of_the_disk_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match=os.strerror(code)) as caught:
        write_text(tmp_path / "scores.json", "new")
    assert caught.value.filename == str(tmp_path / "scores.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EISDIR, "of what was read"), OSError("of a library"), OSError(28, "no", "a")],
)
def test_an_error_of_something_else_does_not_name_the_file(tmp_path: Path, error: OSError) -> None:
    name = error.filename
    with (
        pytest.raises(OSError, match=re.escape(str(error))) as caught,
        writing(tmp_path / "scores.json"),
    ):
        raise error
    assert caught.value.filename == name


@pytest.mark.parametrize("is_left_over", [False, True])
def test_of_a_link_to_a_folder_the_link_is_replaced(tmp_path: Path, is_left_over: bool) -> None:
    (tmp_path / "disk/kept").mkdir(parents=True)
    link = tmp_path / "corpus"
    link.symlink_to("disk")
    if is_left_over:
        (tmp_path / ".corpus.removing").symlink_to("disk")
    with replacing(link) as aside:
        (aside / "new").mkdir(parents=True)
    assert not link.is_symlink()
    assert [path.name for path in link.iterdir()] == ["new"]
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "corpus"}
    assert (tmp_path / "disk/kept").is_dir()


@pytest.mark.parametrize("removing", [remove, remove_folder])
def test_of_a_link_to_a_folder_the_link_is_removed(
    removing: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "disk/kept").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    removing(tmp_path / "link")
    assert list(tmp_path.iterdir()) == [tmp_path / "disk"]
    assert (tmp_path / "disk/kept").is_dir()


@pytest.mark.parametrize(
    ("path", "file", "inner"),
    [
        ("vectors.txt", "vectors.txt", None),
        ("a (1).txt", "a (1).txt", None),
        ("(glove.zip)#glove.6B.50d.txt", "glove.zip", "glove.6B.50d.txt"),
        ("data/(glove.zip)#sub/glove.txt", "data/glove.zip", "sub/glove.txt"),
        ("(/data/glove.zip)#x.txt", "/data/glove.zip", "x.txt"),
    ],
)
def test_archive_path_splits_archive_and_inner_name(path, file, inner):
    assert archive_path(Path(path)) == ArchivePath(Path(file), inner)


@pytest.mark.parametrize("file", ["glove.zip", "/data/glove.zip"])
def test_an_absolute_form_means_the_same_file(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)

    found = archive_path(Path(f"({file})#x.txt").absolute())

    assert found == ArchivePath(Path(file).absolute(), "x.txt")


def test_file_over_the_limit_of_the_process_is_refused(tmp_path: Path) -> None:
    before = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (4096, before[1]))
    try:
        require_file_size(tmp_path / "vectors", 4096)
        with pytest.raises(OSError, match="needs 4,097 bytes, and `ulimit -f` allows 4,096"):
            require_file_size(tmp_path / "vectors", 4097)
    finally:
        setrlimit(RLIMIT_FSIZE, before)
