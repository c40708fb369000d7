"""Metrics that a config adds to those of the task, one of them from a plugin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from elmo_framework import load
from elmo_framework.commands.main import main
from tests.plugin_scope import without_plugins

PLUGIN = '''
from elmo_framework.metrics.accuracy import label_pairs
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import ratio
from collections.abc import Sequence

@Metric.register("errors_of")
class ErrorsOf(Metric):
    """The fraction of wrong tags among the words of one gold tag; `error_rate`."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def count(self, prediction: Sequence[str], gold: Sequence[str]):
        pairs = [pair for pair in label_pairs(prediction, gold) if pair[1] == self.tag]
        return {"wrong": sum(a != b for a, b in pairs), "total": len(pairs)}

    def score(self, sums):
        return {"error_rate": ratio(sums.get("wrong", 0.0), sums.get("total", 0.0))}
'''
CONFIG: dict[str, Any] = {
    "dataset_reader": "conll2003",
    "train_data_path": "train.txt",
    "validation_data_path": "train.txt",
    "model": {
        "type": "simple_tagger",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 5}}},
        "metrics": ["confusion", "mcc", {"type": "errors_of", "tag": "B-PER"}],
    },
    "trainer": {
        "num_epochs": 2,
        "optimizer": {"type": "adam", "lr": 0.2},
        "validation_metric": "+mcc",
        "callbacks": ["tensorboard"],
    },
}


@pytest.fixture(scope="module", autouse=True)
def _run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with a run in `run` and the plugin of its metric."""
    with without_plugins("error_metric"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("work"))
        Path("error_metric.py").write_text(PLUGIN)
        Path("train.txt").write_text("Anna B-PER\nleft O\n\nBen B-PER\nstayed O\n")
        Path("ner.json").write_text(json.dumps(CONFIG))
        train = ["train", "ner.json", "-s", "run", "--include-package", "error_metric"]
        assert main(train) == 0
        yield


def test_metrics_json_has_the_added_scores() -> None:
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert {"best_validation_mcc", "validation_error_rate", "validation_accuracy"} <= set(metrics)


def test_best_checkpoint_is_that_of_the_added_metric() -> None:
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    best = max(line["mcc"] for line in lines)
    assert json.loads(Path("run/metrics.json").read_text())["best_validation_mcc"] == best


def test_tensorboard_has_the_added_scores() -> None:
    events = EventAccumulator("run/log")
    events.Reload()
    assert {"evaluation/mcc", "evaluation/error_rate"} <= set(events.Tags()["scalars"])


def test_evaluate_computes_the_added_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "run", "train.txt", "--format", "json"]) == 0
    (scores,) = json.loads(capsys.readouterr().out).values()
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert scores["mcc"] == metrics["best_validation_mcc"]
    assert scores["error_rate"] == metrics["best_validation_error_rate"]
    table = scores["confusion"]
    assert sum(table["B-PER"].values()) == sum(table["O"].values()) == 2


def test_filled_config_has_the_added_metrics() -> None:
    filled = json.loads(Path("run/filled_config.json").read_text())
    assert filled["model"]["metrics"] == [
        {"type": "confusion"},
        {"type": "mcc"},
        {"type": "errors_of", "tag": "B-PER"},
    ]


def test_a_run_without_the_key_loads() -> None:
    path = Path("run/filled_config.json")
    text = path.read_text()
    config = json.loads(text)
    del config["model"]["metrics"]
    config["trainer"]["validation_metric"] = "-loss"
    path.write_text(json.dumps(config))
    try:
        scores = load("run").evaluate("train.txt")
    finally:
        path.write_text(text)
    assert "mcc" not in scores
    assert "accuracy" in scores


def test_describe_lists_the_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "metric"]) == 0
    lines = capsys.readouterr().out
    for name in ("categorical_accuracy", "conll_coref_scores", "errors_of", "mcc", "squad"):
        assert f"\n  {name} " in lines
