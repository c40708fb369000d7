from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.errors import RunError
from elmo_framework.experiment.run_directory import RunDirectory


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
