"""A checkpoint is whole or not there, whatever moment the process dies at."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from elmo_framework.common import files
from elmo_framework.common.errors import RunError
from elmo_framework.data.source import Share
from elmo_framework.training import checkpointer as checkpointing
from elmo_framework.training.checkpointer import Checkpointer
from elmo_framework.training.process_group import ProcessGroup
from tests.unit.training.test_trainer import figures, final_weights
from tests.unit.training.toy import Toy

TRACED = {checkpointing.__file__, files.__file__}


class LineCounter:
    """Counts the lines that checkpoints are written by; ends the process at one of them."""

    def __init__(self, die_at: int | None = None) -> None:
        self.die_at, self.count = die_at, 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            if self.count == self.die_at:
                os._exit(9)
            self.count += 1
        return self.trace

    def __enter__(self) -> LineCounter:
        self.before = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self.before)


def begun(directory: Path) -> Toy:
    """A training that has one checkpoint behind it and stands before the next."""
    toy = Toy(directory, num_steps=6)
    toy.run()
    return Toy(directory, checkpointer={"keep_most_recent_by_count": 1})


def die_while_saving(directory: Path, line: int) -> None:
    """Go on in a child process, which dies at a line of the next checkpoint's writing."""
    child = os.fork()
    if child == 0:
        toy = begun_again(directory)
        with LineCounter(die_at=line):
            toy.trainer._save(toy.checkpointer)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 9)


def begun_again(directory: Path) -> Toy:
    """The same training after three more steps, not saved."""
    toy = Toy(directory, checkpointer={"keep_most_recent_by_count": 1})
    toy.trainer._restore(toy.checkpointer)
    steps = toy.trainer.steps()
    for _ in range(3):
        next(steps)
    return toy


@pytest.mark.slow
def test_a_death_at_any_line_of_the_writing_loses_at_most_the_new_checkpoint(
    tmp_path: Path,
) -> None:
    begun(tmp_path / "count")
    toy = begun_again(tmp_path / "count")
    with LineCounter() as counter:
        toy.trainer._save(toy.checkpointer)
    assert counter.count > 50

    whole = Toy(tmp_path / "whole")
    whole.run()
    found = set()
    for line in range(counter.count):
        directory = tmp_path / f"line-{line}"
        begun(directory)
        die_while_saving(directory, line)
        restored = Toy(directory).checkpointer.restore()
        assert restored is not None
        found.add(restored.progress.step)
        if line % 20 == 0:
            resumed = Toy(directory)
            resumed.run()
            assert final_weights(resumed) == final_weights(whole)
            assert figures(directory) == figures(tmp_path / "whole")
    assert found == {6, 9}


def test_a_full_disk_leaves_the_last_checkpoint_alone(
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


def test_a_damaged_checkpoint_says_what_to_remove(tmp_path: Path) -> None:
    toy = begun(tmp_path)
    folder = toy.checkpointer.folders()[6]
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(RunError, match=f"{folder}: this checkpoint cannot be read .* remove"):
        toy.run()


def test_another_number_of_processes_is_told_that_it_goes_on_inexactly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun(tmp_path)
    group = ProcessGroup(Share(rank=0, world_size=2))
    found = Checkpointer(tmp_path / "checkpoints", keep=1, group=group).restore()
    assert found is not None
    assert found.num_processes == 1
    assert "written by 1 processes, and now there are 2" in caplog.text


def test_the_best_checkpoint_is_what_another_training_starts_from(tmp_path: Path) -> None:
    toy = Toy(tmp_path, num_epochs=6, validation_metric="+loss")
    progress = toy.run().progress
    best = toy.checkpointer.best()
    assert best is not None
    expected = toy.checkpointer.best_weights(progress)
    assert all(held.equal(expected[name]) for name, held in best.weights.items())
    assert {float(held["step"]) for held in best.training["state"].values()} == {6.0}


def test_without_a_checkpoint_there_is_no_best(tmp_path: Path) -> None:
    assert Toy(tmp_path).checkpointer.best() is None


def test_no_pickle_is_read(tmp_path: Path) -> None:
    toy = begun(tmp_path)
    folder = toy.checkpointer.folders()[6]

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    torch.save({"evil": Evil()}, folder / "training.pt")
    with pytest.raises(RunError, match="cannot be read"):
        toy.run()
    assert not (tmp_path / "executed").exists()
