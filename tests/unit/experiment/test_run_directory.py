from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.data.data_loader import Rank
from elmo_framework.errors import RunError
from elmo_framework.experiment.run_directory import RunDirectory, require_distinct
from elmo_framework.training.checkpointer import Checkpointer
from elmo_framework.training.process_group import ProcessGroup


def test_refused_folder_keeps_no_lock(tmp_path: Path) -> None:
    (tmp_path / "dear.txt").write_text("...")
    run = RunDirectory(tmp_path)
    with (
        pytest.raises(RunError, match=r"it contains other files \(dear\.txt, "),
        run.locked(),
    ):
        run.prepare(force=True, recover=False)
    assert [path.name for path in tmp_path.iterdir()] == ["dear.txt"]


def test_folder_in_use_is_refused(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path).locked(),
        pytest.raises(RunError, match="another process is training here"),
        RunDirectory(tmp_path).locked(),
    ):
        pass


def test_starting_over_keeps_files_of_the_user(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for name in ("filled_config.json", "metrics.json", "weights.safetensors", "predictions.jsonl"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "checkpoints/step-1").mkdir(parents=True)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "log").symlink_to(tmp_path / "missing")
    with run.locked():
        run.prepare(force=True, recover=False)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            ".lock",
            "onnx",
            "predictions.jsonl",
        ]


def test_recovery_settles_checkpoints_before_any_rank_reads_them(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    for name in ("step-1", ".step-2.replaced", ".step-2.writing", ".step-3.writing"):
        (checkpoints / name).mkdir(parents=True)
    (tmp_path / "filled_config.json").write_text("{}")
    RunDirectory(tmp_path).prepare(force=False, recover=True)
    assert sorted(path.name for path in checkpoints.iterdir()) == ["step-1", "step-2"]
    for index in (0, 1):
        group = ProcessGroup(Rank(index, 2))
        assert sorted(Checkpointer(checkpoints, keep=1, group=group).folders()) == [1, 2]


def test_a_run_that_is_listed_twice_is_recognized_by_any_path(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "b/../a"]
    require_distinct(paths[:2])
    with pytest.raises(RunError, match=r"a is listed twice; name each run once"):
        require_distinct(paths)
