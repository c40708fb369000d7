"""Model cards: nothing of the machine is in them, in the folder or in an archive."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from elmo_framework.experiment.archive import archive_run
from elmo_framework.experiment.model_card import model_card
from elmo_framework.experiment.run_directory import RunDirectory

COMMAND = [
    "elmo",
    "train",
    "/home/me/ner.jsonnet",
    "--serialization-dir=/home/me/run",
    "-o",
    "train_data_path=/home/me/train.txt",
    "-o",
    "validation_data_path=file:///home/me/valid.txt",
    "-o",
    '{"test_data_path": "/home/me/my data/test.txt"}',
]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A folder with the files of a run that an archive reads."""
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.write_json(run.config, {})
    run.write_json(run.metadata, {"command": COMMAND, "digests": {}})
    run.weights.touch()
    return run


def test_the_command_of_a_card_has_no_absolute_paths(run: RunDirectory) -> None:
    expected = (
        "`elmo train ner.jsonnet --serialization-dir=run -o train_data_path=train.txt "
        """-o validation_data_path=valid.txt -o {"test_data_path": "test.txt"}`"""
    )
    assert expected in model_card(run)
    command = ["elmo", "train", "-o", "a=/home/me/my data/b.txt"]
    run.write_json(run.metadata, {"command": command, "digests": {}})
    assert "`elmo train -o a=b.txt`" in model_card(run)


def test_an_imported_run_was_trained_elsewhere(run: RunDirectory) -> None:
    assert "A model of type `model`, imported: it was trained elsewhere." in model_card(run)
    assert "has not ended" not in model_card(run)
    run.weights.unlink()
    assert "Its training has not ended: these are the best weights so far." in model_card(run)
    run.write_json(run.metrics, {"training_steps": 3})
    assert "trained with elmo_framework.\n\n```bash" in model_card(run)


def test_the_card_of_an_archive_has_no_absolute_paths(run: RunDirectory, tmp_path: Path) -> None:
    run.model_card.write_text(f"| command | `{' '.join(COMMAND)}` |\n")
    archive_run(run.path, tmp_path / "run.tar.gz", with_bilm=False)
    with tarfile.open(tmp_path / "run.tar.gz") as archive:
        for name in ("README.md", "metadata.json"):
            member = archive.extractfile(name)
            assert member is not None
            text = member.read().decode()
            assert "train_data_path=train.txt" in text
            assert "/home" not in text
    assert json.loads(run.metadata.read_text())["command"] == COMMAND
