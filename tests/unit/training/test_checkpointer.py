"""A checkpoint is whole or not there, whatever moment the process dies at."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
import torch

from elmo_framework.data.data_loader import Rank
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.io import files
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.model.weights import load_tensors
from elmo_framework.training import checkpointer as checkpointing
from elmo_framework.training.checkpointer import Checkpointer
from elmo_framework.training.process_group import ProcessGroup
from tests.unit.training.test_trainer import final_weights, read_metrics
from tests.unit.training.toy import Alike, Toy

TRACED = {checkpointing.__file__, files.__file__, shutil.__file__}

Content: TypeAlias = dict[Path, bytes | None]


def content(directory: Path) -> Content:
    """What lies in a folder: the bytes of each file, None for each folder."""
    return {
        path.relative_to(directory): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def lay_out(files: Content, directory: Path) -> None:
    for path, written in files.items():
        if written is None:
            (directory / path).mkdir(parents=True)
        else:
            (directory / path).write_bytes(written)


class Deaths:
    """Notes what a folder holds before each line that checkpoints are written by.

    It is what a process that dies there leaves behind; lines that change nothing leave the same.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.num_lines = directory, 0
        self.left: list[Content] = []

    def trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            self.num_lines += 1
            files = content(self.directory)
            if not self.left or files != self.left[-1]:
                self.left.append(files)
        return self.trace

    def __enter__(self) -> Deaths:
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self.before)


def begun(directory: Path) -> Toy:
    """A training with one checkpoint, about to write the next."""
    toy = Toy(directory, num_steps=6)
    toy.run()
    return Toy(directory, checkpointer={"keep_most_recent_by_count": 1})


def begun_again(directory: Path) -> Toy:
    """The same training after three more steps, not saved."""
    toy = Toy(directory, checkpointer={"keep_most_recent_by_count": 1})
    toy.trainer._restore(toy.checkpointer)
    steps = toy.trainer.steps()
    for _ in range(3):
        next(steps)
    return toy


def test_kill_while_saving_loses_at_most_the_new_checkpoint(
    tmp_path: Path,
) -> None:
    Toy(tmp_path / "dying", num_steps=6, checkpointer={"save_every": {"steps": 3}}).run()
    toy = begun_again(tmp_path / "dying")
    assert sorted(toy.checkpointer.folders()) == [3, 6]
    with Deaths(tmp_path / "dying") as deaths:
        toy.trainer._save(toy.checkpointer)
    assert sorted(toy.checkpointer.folders()) == [6, 9]
    assert deaths.num_lines > 50
    assert len(deaths.left) > 10

    whole = Toy(tmp_path / "whole")
    whole.run()
    restored_steps = set()
    for number, left in enumerate(deaths.left):
        directory = tmp_path / f"death-{number}"
        lay_out(left, directory)
        resumed = Toy(directory)
        restored = resumed.checkpointer.restore()
        assert restored is not None
        restored_steps.add(restored.progress.step)
        assert list((directory / "checkpoints").glob(".*")) == []
        resumed.run()
        assert final_weights(resumed) == final_weights(whole)
        assert read_metrics(directory) == read_metrics(tmp_path / "whole")
    assert restored_steps == {6, 9}


def test_other_folders_beside_checkpoints_are_left_alone(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_steps=6, checkpointer={"save_every": {"steps": 3}})
    toy.run()
    copy = tmp_path / "checkpoints/step-000000003.bak"
    shutil.copytree(tmp_path / "checkpoints/step-000000003", copy)
    (tmp_path / "checkpoints/step-000000009").write_text("")
    assert sorted(toy.checkpointer.folders()) == [3, 6]
    assert toy.checkpointer.restore() is not None
    assert toy.checkpointer.best() is not None
    assert copy.is_dir()


def test_kill_between_two_renames_loses_no_checkpoint(tmp_path: Path) -> None:
    Toy(tmp_path, num_steps=3).run()
    folder = tmp_path / "checkpoints/step-000000003"
    shutil.copytree(folder, folder.with_name(f".{folder.name}.writing"))
    folder.rename(folder.with_name(f".{folder.name}.replaced"))
    restored = Toy(tmp_path).checkpointer.restore()
    assert restored is not None
    assert restored.progress.step == 3
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_full_disk_preserves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path)
    toy = begun_again(tmp_path)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpointing, "save_tensors", full)
    with pytest.raises(OSError, match="No space left"):
        toy.trainer._save(toy.checkpointer)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000006"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"damaged"),
        ("training.pt", b""),
        ("process-0.pt", b""),
        ("progress.json", b""),
        ("progress.json", b"[]"),
        ("progress.json", b"3"),
        ("progress.json", b'{"num_processes": 1, "scores": [], "later": 3}'),
    ],
)
def test_damaged_checkpoint_error_names_the_folder_to_remove(
    tmp_path: Path, file: str, content: bytes
) -> None:
    toy = begun(tmp_path)
    folder = toy.checkpointer.folders()[6]
    (folder / file).write_bytes(content)
    with pytest.raises(RunError, match=f"{folder}: this checkpoint cannot be read .* remove"):
        toy.run()


def test_other_number_of_processes_warns_of_inexact_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun(tmp_path)
    group = ProcessGroup(Rank(index=0, world_size=2))
    snapshot = Checkpointer(tmp_path / "checkpoints", keep=1, group=group).restore()
    assert snapshot is not None
    assert snapshot.num_processes == 1
    assert "written by 1 processes, but 2 are running" in caplog.text


def test_best_checkpoint_initializes_another_training(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=6, validation_metric="+loss")
    progress = toy.run().progress
    best = toy.checkpointer.best()
    assert best is not None
    weights, optimizer_state = best
    expected = toy.checkpointer.best_weights(progress)
    assert all(weight.equal(expected[name]) for name, weight in weights.items())
    assert {float(state["step"]) for state in optimizer_state["state"].values()} == {6.0}


def test_without_a_checkpoint_there_is_no_best(tmp_path: Path) -> None:
    assert Toy(tmp_path).checkpointer.best() is None


def test_checkpoint_with_pickle_is_rejected(tmp_path: Path) -> None:
    toy = begun(tmp_path)
    folder = toy.checkpointer.folders()[6]

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    torch.save({"evil": Evil()}, folder / "training.pt")
    with pytest.raises(RunError, match="cannot be read"):
        toy.run()
    assert not (tmp_path / "executed").exists()


class Payload:
    """What runs a command where a pickle is loaded without care."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", ["training.pt", "process-0.pt"])
def test_malicious_checkpoint_runs_no_code(tmp_path: Path, name: str) -> None:
    toy = Toy(tmp_path / "run", num_steps=2)
    toy.run()
    for folder in toy.checkpointer.folders().values():
        torch.save({"optimizer": Payload(tmp_path / "ran")}, folder / name)
    with pytest.raises(RunError, match="this checkpoint cannot be read"):
        toy.checkpointer.restore()
    assert not (tmp_path / "ran").exists()


def test_a_thread_writes_what_an_accelerator_had_when_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(tmp_path, num_steps=1)
    is_changed = threading.Event()
    write = toy.checkpointer._write

    def write_later(*arguments: Any) -> None:
        assert is_changed.wait(30)
        write(*arguments)

    monkeypatch.setattr(toy.checkpointer, "_write", write_later)
    expected = {name: tensor.clone() for name, tensor in toy.model.state_dict().items()}
    with accelerator_code():
        toy.trainer._save(toy.checkpointer)
    with torch.no_grad():
        for tensor in toy.model.parameters():
            tensor += 1
    is_changed.set()
    assert list(toy.checkpointer.folders()) == [0]
    written = load_tensors(toy.checkpointer.weights_file(0))
    for name, tensor in expected.items():
        assert torch.equal(written[name], tensor)


def test_restore_waits_for_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Toy(tmp_path, num_steps=1)
    is_begun, is_awaited = threading.Event(), threading.Event()
    write, finish = toy.checkpointer._write, toy.checkpointer.finish

    def write_later(folder: Path, *arguments: Any) -> None:
        folder.mkdir()
        is_begun.set()
        assert is_awaited.wait(30)
        folder.rmdir()
        write(folder, *arguments)

    def await_it() -> None:
        is_awaited.set()
        finish()

    with accelerator_code():
        monkeypatch.setattr(toy.checkpointer, "_write", write_later)
        toy.trainer._save(toy.checkpointer)
        assert is_begun.wait(30)
        monkeypatch.setattr(toy.checkpointer, "finish", await_it)
        assert toy.checkpointer.restore() is not None


def test_an_error_of_the_thread_stops_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    toy = Toy(tmp_path, num_steps=1)
    monkeypatch.setattr(toy.checkpointer, "_write", fail)
    with accelerator_code():
        toy.trainer._save(toy.checkpointer)
        with pytest.raises(OSError, match="No space left on device"):
            toy.trainer._save(toy.checkpointer)
    assert content(tmp_path / "checkpoints") == {}


def test_checkpoints_of_an_accelerator_resume_exactly(tmp_path: Path) -> None:
    every = {"checkpointer": {"save_every": {"steps": 1}}}
    with accelerator_code():
        whole = Toy(tmp_path / "whole", num_steps=6, **every)
        whole.run()
        Toy(tmp_path / "parts", num_steps=3, **every).run()
        parts = Toy(tmp_path / "parts", num_steps=6, **every)
        parts.run()
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(parts.model.state_dict()[name], tensor)


@pytest.mark.parametrize("signal_name", [None, "SIGTERM"])
def test_processes_meet_when_the_last_checkpoint_is_written(
    tmp_path: Path, signal_name: str | None
) -> None:
    meetings = []

    class Meeting(Alike):
        def wait(self) -> None:
            meetings.append([path.name for path in (tmp_path / "checkpoints").glob("step-*")])

    with accelerator_code():
        options: dict[str, Any] = {"num_epochs": None, "num_steps": 20, "evaluate_every": {}}
        toy = Toy(tmp_path, group=Meeting(Rank(0, 2)), **options)
        toy.interrupt.signal_name = signal_name
        with nullcontext() if signal_name is None else pytest.raises(StoppedError):
            toy.run()
    assert meetings == [["step-000000020"]]
