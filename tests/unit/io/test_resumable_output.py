"""Outputs that grow in a folder of their own, and jobs that continue."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from elmo_framework.errors import RunError, StoppedError
from elmo_framework.io import resumable_output
from elmo_framework.io.resumable_output import (
    FolderRules,
    Journal,
    ResumableOutput,
    stoppable,
)

SETTINGS = {"input": "a", "layers": [1, 2]}


@pytest.fixture
def output(tmp_path: Path) -> ResumableOutput:
    return ResumableOutput(tmp_path / "out", flag="--output-file")


def begun(output: ResumableOutput, *lines: str) -> ResumableOutput:
    output.begin(SETTINGS, resume=False)
    output.result.write_text("result")
    with output.journal("done.txt") as journal:
        for line in lines:
            journal.mark_done(line)
    return output


def test_a_job_without_progress_starts_over(output: ResumableOutput) -> None:
    begun(output)
    output.check_overwritable(resume=False, force=False)
    assert not output.begin({"input": "b"}, resume=True)
    assert [path.name for path in output.path.iterdir()] == ["settings.json"]


def test_a_job_with_progress_continues_only_when_asked_to(output: ResumableOutput) -> None:
    begun(output, "1")
    with pytest.raises(RunError, match="resume it with --resume, or start over with --force"):
        output.check_overwritable(resume=False, force=False)
    output.check_overwritable(resume=True, force=False)
    assert output.begin(SETTINGS, resume=True)
    assert list(output.done(str)) == ["1"]
    output.check_overwritable(resume=False, force=True)
    assert not output.begin(SETTINGS, resume=False)
    assert not output.has_progress()


def test_a_job_with_other_settings_does_not_continue(output: ResumableOutput) -> None:
    begun(output, "1")
    with pytest.raises(RunError, match=r"layers was \[1, 2\] and is 3; use the same"):
        output.begin({**SETTINGS, "layers": 3}, resume=True)


@pytest.mark.parametrize("content", ["", "{", "\udcff"])
def test_damaged_settings_are_named(output: ResumableOutput, content: str) -> None:
    begun(output, "1")
    (output.path / "settings.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=r"settings\.json: this file is damaged"):
        output.begin(SETTINGS, resume=True)


def test_half_a_line_of_a_journal_is_dropped(output: ResumableOutput) -> None:
    begun(output, "1", "22")
    path = output.path / "done.txt"
    with path.open("ab") as file:
        file.write(b"\xff3" * 70_000)
    assert list(output.done(str)) == ["1", "22"]
    with output.journal("done.txt") as journal:
        journal.mark_done("4", "5")
    assert path.read_text() == "1\n22\n4\n5\n"


@pytest.mark.parametrize("content", [b"1\nx\n", b"1\n\xff\n"])
def test_a_damaged_journal_is_named(output: ResumableOutput, content: bytes) -> None:
    begun(output)
    (output.path / "done.txt").write_bytes(content)
    with pytest.raises(RunError, match=r"done\.txt: this file is damaged .*start over"):
        list(output.done(int))


def test_the_journals_of_all_processes_count(output: ResumableOutput) -> None:
    begun(output)
    for rank in (1, 0):
        with output.journal(f"done-{rank}.txt") as journal:
            journal.mark_done(str(rank))
    assert list(output.done(str)) == ["0", "1"]


def test_a_journal_of_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert list(Journal.lines(tmp_path / "done.txt")) == []


def test_a_finished_result_has_its_name_alone(output: ResumableOutput, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("before")
    begun(output, "1").finish()
    assert (tmp_path / "out").read_text() == "result"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_result_that_has_its_name_is_recognized(output: ResumableOutput) -> None:
    begun(output, "1")
    assert not output.is_named()
    output.output.write_text("before")
    assert not output.is_named()
    output.result.replace(output.output)
    assert output.is_named()


def test_a_folder_that_no_job_has_made_is_left_alone(output: ResumableOutput) -> None:
    output.path.mkdir()
    (output.path / "mine.txt").write_text("mine")
    message = r"out\.partial, the folder for partial results, contains other files \(mine\.txt"
    for force in (False, True):
        with pytest.raises(RunError, match=message):
            output.check_overwritable(resume=False, force=force)
        with pytest.raises(RunError, match=message):
            output.begin(SETTINGS, resume=False)
    assert (output.path / "mine.txt").read_text() == "mine"


def test_folder_without_settings_does_not_block_a_job(output: ResumableOutput) -> None:
    output.path.mkdir()
    (output.path / ".settings.json.writing").write_text("{")
    output.check_overwritable(resume=False, force=False)
    assert not output.begin(SETTINGS, resume=False)
    assert json.loads((output.path / "settings.json").read_text()) == SETTINGS


def test_overwriting_needs_force_and_never_replaces_a_folder(
    output: ResumableOutput, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(RunError, match=r"--output-file .*out already exists; pass --force"):
        output.check_overwritable(resume=False, force=False)
    output.check_overwritable(resume=False, force=True)
    (tmp_path / "out").unlink()
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match="out is not an ordinary file"):
        output.check_overwritable(resume=False, force=True)


@pytest.fixture
def in_place(tmp_path: Path) -> ResumableOutput:
    """A folder that is itself the output, with progress."""
    for name in (".lock", ".hidden", "a.txt", "job.json", "steps/1", "z.txt"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text("")
    rules = FolderRules(marker="job.json", progress=("steps",))
    return ResumableOutput(tmp_path / "out", flag="--output-dir", in_place=rules)


def test_a_folder_in_place_is_cleared_with_its_marker_last(
    in_place: ResumableOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunError, match="belongs to an interrupted job"):
        in_place.check_overwritable(resume=False, force=False)
    in_place.check_overwritable(resume=True, force=False)
    in_place.check_overwritable(resume=False, force=True)
    removed = list[str]()
    monkeypatch.setattr(resumable_output, "remove", lambda path: removed.append(path.name))
    in_place.clear(["job.json", "a.txt", "steps"])
    assert removed == ["a.txt", "steps", "job.json"]
    monkeypatch.undo()
    in_place.clear(["job.json", "steps", "other.txt"])
    remaining = {path.name for path in in_place.path.iterdir()}
    assert remaining == {".lock", ".hidden", "a.txt", "z.txt"}


@pytest.mark.parametrize("is_begun", [True, False])
def test_an_in_place_lock_file_remains_only_with_progress(
    in_place: ResumableOutput, is_begun: bool
) -> None:
    if not is_begun:
        (in_place.path / "job.json").unlink()
    with in_place.locked():
        assert (in_place.path / ".lock").exists()
        with pytest.raises(RunError, match="another job is writing here"), in_place.locked():
            pass
    assert (in_place.path / ".lock").exists() == is_begun


def interrupted(done: list[str], *numbers: signal.Signals) -> None:
    """Send a job a signal, and others while it ends; note how far it comes."""
    with stoppable():
        try:
            os.kill(os.getpid(), numbers[0])
            done.append("work")
        finally:
            for number in numbers[1:]:
                os.kill(os.getpid(), number)
            done.append("end")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_job_with_how_to_continue(number: signal.Signals) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(StoppedError, match="interrupted; resume with --resume"):
        interrupted([], number)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_sigterm_does_not_disturb_the_end() -> None:
    done = list[str]()
    with pytest.raises(StoppedError):
        interrupted(done, signal.SIGTERM, signal.SIGTERM)
    assert done == ["end"]
