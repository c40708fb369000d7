"""Commands on text that is not on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from elmo_framework import load
from elmo_framework.commands.main import main
from tests.experiment.jobs import ROOT
from tests.experiment.test_text_configs import TOPICS

CSV = ROOT / "tests/fixtures/text_classification/topics.csv"


def train(folder: Path, data: str) -> dict[str, object]:
    config = {**TOPICS, "train_data_path": data, "validation_data_path": data}
    config["trainer"] = {"num_epochs": 1, "callbacks": []}
    folder.mkdir()
    (folder / "topics.json").write_text(json.dumps(config))
    assert main(["train", str(folder / "topics.json"), "-s", str(folder / "run")]) == 0
    metrics = json.loads((folder / "run/metrics.json").read_text())
    return {name: value for name, value in metrics.items() if "duration" not in name}


def test_training_evaluation_and_prediction_read_urls(
    memory: MemoryFileSystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.pipe("/data/topics.csv", CSV.read_bytes())
    url = "memory://data/topics.csv"
    assert train(tmp_path / "remote", url) == train(tmp_path / "local", str(CSV))

    run = tmp_path / "remote/run"
    assert json.loads((run / "filled_config.json").read_text())["train_data_path"] == url
    assert url in json.loads((run / "metadata.json").read_text())["digests"]["data"]
    outputs = []
    for data in (url, str(CSV)):
        assert main(["evaluate", str(run), data]) == 0
        capsys.readouterr()
        assert main(["predict", str(run), data]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert load(run).evaluate(url) == load(run).evaluate(CSV)


def test_sentences_to_embed_are_read_from_urls(
    bilm: Path, memory: MemoryFileSystem, tmp_path: Path
) -> None:
    memory.pipe("/text.txt", b"Snow fell .\n")
    (tmp_path / "text.txt").write_bytes(b"Snow fell .\n")
    for name, text in (("a.npy", "memory://text.txt"), ("b.npy", str(tmp_path / "text.txt"))):
        output = ["--output-file", str(tmp_path / name)]
        assert main(["embed", str(bilm), text, *output]) == 0
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
