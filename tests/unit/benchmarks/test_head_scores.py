from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from head_scores import main
from head_scores_allennlp import batches

from elmo_framework.config.load import Config

FAKE = """
import json, sys
from pathlib import Path
path = Path(sys.argv[4])
data = json.loads(path.read_text())
gold = [example["tags"] for example in data["validation"]]
wrong = [["O"] * len(tags) for tags in gold]
for number, predictions in enumerate((wrong, gold), start=1):
    path.with_name(f"evaluation-{number:03}.json").write_text(json.dumps(predictions))
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text("Ann O O B-PER\nsaw O O O\nrome O O B-LOC\n")
    (tmp_path / "vectors.txt").write_text("ann 1 2\nsaw 3 4\n")
    data = str(tmp_path / "data.txt")
    tokens = {
        "type": "embedding",
        "embedding_dim": 2,
        "pretrained_file": str(tmp_path / "vectors.txt"),
        "lowercase": True,
    }
    content = {
        "dataset_reader": {"type": "conll2003", "coding_scheme": "BIOUL"},
        "train_data_path": data,
        "validation_data_path": data,
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"tokens": tokens}},
            "encoder": {"type": "lstm", "hidden_size": 4},
        },
        "trainer": {
            "optimizer": {"type": "adam", "lr": 0.01},
            "validation_metric": "+f1-measure-overall",
        },
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    return path


def run(config: Path, monkeypatch: pytest.MonkeyPatch, *overrides: str) -> int:
    """Run the script with a program in place of AllenNLP, which predicts the gold tags."""
    folder = config.parent
    (folder / "fake.py").write_text(FAKE)
    python = folder / "peers/an/bin/python"
    python.parent.mkdir(parents=True)
    # Called as: python -W ignore SCRIPT DATA --scripts DIR.
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/fake.py" "$@"\n')
    python.chmod(0o755)
    options = ["--peers", str(folder / "peers"), "--scripts", str(folder)]
    options += ["--output-dir", str(folder / "out")]
    options += [part for override in overrides for part in ("-o", override)]
    monkeypatch.setattr("sys.argv", ["head_scores.py", str(config), *options])
    return main()


def test_best_evaluation_of_the_other_head_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(config, monkeypatch) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines() == [
        "evaluation-001: f1-measure-overall 0.00",
        "evaluation-002: f1-measure-overall 100.00 (best)",
    ]


def test_the_other_head_starts_from_the_same_vectors(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(config, monkeypatch) == 0
    data: dict[str, Any] = json.loads((config.parent / "out/data.json").read_text())
    assert data["config"]["model"] == Config.load(config).raw["model"]
    ((words, tags),) = [(example["words"], example["tags"]) for example in data["train"]]
    assert (words, tags) == (["Ann", "saw", "rome"], ["U-PER", "O", "U-LOC"])
    vectors = dict(zip(data["words"], data["vectors"]["tokens"], strict=True))
    assert vectors["Ann"] == [1, 2]
    assert vectors["saw"] == [3, 4]


def test_training_that_the_other_head_does_not_have_is_refused(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    average = 'trainer.moving_average={"decay": 0.9}'
    assert run(config, monkeypatch, average) == 1
    assert "-o trainer.moving_average=null" in capsys.readouterr().err


def test_batches_have_all_examples_once_in_another_order() -> None:
    examples = [{"words": ["a"] * (index % 7)} for index in range(30)]
    for bucketing in (False, True):
        options = {"batch_size": 4, "bucketing": bucketing}
        first, second = (list(batches(examples, options, epoch)) for epoch in (0, 1))
        for plan in (first, second):
            assert sorted(map(len, plan)) == [2, 4, 4, 4, 4, 4, 4, 4]
            seen = [id(example) for batch in plan for example in batch]
            assert sorted(seen) == sorted(map(id, examples))
        assert first != second
    spread = [{len(example["words"]) for example in batch} for batch in first]
    assert max(map(len, spread)) <= 3
