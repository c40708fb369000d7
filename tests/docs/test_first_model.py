"""The page shows what its commands print for a small table, and the result can be served."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from elmo_framework.serve.app import Server
from elmo_framework.serve.job import ServingJob
from elmo_framework.serve.server import served_run
from tests.conftest import ROOT
from tests.docs.page import run_page

PAGE = ROOT / "docs/first_model.md"


@pytest.mark.slow
def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "experiments/demo/messages.csv", tmp_path)

    assert run_page(PAGE) == 6

    assert Path("messages.html").is_file()
    lines = Path("topics.jsonl").read_text().splitlines()
    predictions = [json.loads(line) for line in lines]
    assert [each["number"] for each in predictions] == ["2001", "2002"]
    assert all(each["label"] in each["probabilities"] for each in predictions)
    answers_equal_predictions(predictions)
    metrics = json.loads(Path("runs/messages/metrics.json").read_text())
    assert metrics["best_validation_accuracy"] > 0.5  # of three labels


def answers_equal_predictions(predictions: list[dict[str, Any]]) -> None:
    """Serve the run: it predicts as the command does, and explains itself."""
    job = ServingJob(models=["runs/messages"], device="cpu")
    server = Server([served_run(job.models[0], job)], [], {}, job=job, token=None, hosts=None)
    client, text = TestClient(server.application), "The driver did not find my house."
    (served,) = client.post("/predict", json={"inputs": [text]}).json()["predictions"]
    explained = client.post("/explain/messages", json={"input": text}).json()
    server.worker.close()
    assert served["label"] == predictions[0]["label"] == explained["label"]
    ((words, scores),) = (each.values() for each in explained["sentences"])
    assert len(words) == len(scores) == 8
    assert sum(scores) == pytest.approx(explained["probability"] - explained["baseline"], abs=0.01)
