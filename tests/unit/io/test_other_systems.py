"""What is different on Windows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elmo_framework.errors import RunError
from elmo_framework.io import files
from elmo_framework.study import fork_server
from elmo_framework.training import process_group


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls of Windows: it opens no folders, and signal 0 is Ctrl-C."""
    opened = os.open

    def open_(path: Path, flags: int, *others: int) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        assert flags != os.O_RDONLY  # could not be flushed
        return opened(path, flags, *others)

    def kill(pid: int, number: int) -> None:
        raise AssertionError((pid, number))

    monkeypatch.setattr("elmo_framework.io.files.os.open", open_)
    monkeypatch.setattr("elmo_framework.training.process_group.os.kill", kill)
    for module in (files, fork_server, process_group):
        monkeypatch.setattr(module, "IS_WINDOWS", True)


def test_files_and_folders_are_replaced(tmp_path: Path) -> None:
    for text in ("one", "two"):
        files.write_text(tmp_path / "file", text)
        with files.replacing(tmp_path / "folder") as aside:
            aside.mkdir()
            (aside / "inner").write_text(text)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/inner").read_text() == "two"


def test_a_peer_is_not_signaled() -> None:
    here = process_group.Peer(0, process_group.platform.node(), os.getpid())
    assert not here.has_ended


def test_a_study_is_refused_before_it_forks() -> None:
    with pytest.raises(RunError, match="which Windows cannot; run it in WSL"):
        fork_server.ForkServer(print)
