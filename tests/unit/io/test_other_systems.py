"""What is different on Windows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import RunError
from elmo_framework.io import files
from elmo_framework.study import fork_server
from elmo_framework.training import process_group


class WindowsCalls:
    """The module `os`, where folders cannot be opened and signal 0 is Ctrl-C."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        assert flags != os.O_RDONLY  # could not be flushed
        return os.open(path, flags)

    def kill(self, pid: int, number: int) -> None:
        raise AssertionError((pid, number))


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, fork_server, process_group):
        monkeypatch.setattr(module, "IS_WINDOWS", True)
    for module in (files, process_group):
        monkeypatch.setattr(module, "os", WindowsCalls())


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
