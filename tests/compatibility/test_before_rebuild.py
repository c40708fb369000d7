"""What the version before the rebuild has written is read and continued, with equal results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from tests.compatibility.versions import Version
from tests.experiment.jobs import evaluations
from tests.fixtures.earlier_jobs import EMBED, PREDICT


def lines(path: str) -> list[object]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_a_moved_run_finds_its_bilm_and_answers(before: Version) -> None:
    assert main([*PREDICT, "predictions.jsonl"]) == 0
    before.check_predictions(lines("predictions.jsonl"), before.json("predictions.jsonl"))
    scores = load("runs/ner", device="cpu").evaluate("data/ner.txt")
    before.check_scores(scores, before.json("scores.json")["ner"])


def copied(layers: Path) -> Path:
    """Copy the cached layers into the cache; return the file with the vectors."""
    (store,) = Path("cache/layers").iterdir()
    return shutil.copytree(store, layers / store.name) / "00000/vectors.bin"


def test_recovery_reads_cached_layers(before: Version, layers: Path) -> None:
    others = {*layers.rglob("vectors.bin")}
    vectors = copied(layers)
    written = vectors.stat()
    run = Path("runs/ner_interrupted")

    assert main(["train", "configs/ner.json", "-s", str(run), "--recover"]) == 0

    assert {*layers.rglob("vectors.bin")} - others == {vectors}
    assert (vectors.stat().st_ino, vectors.stat().st_mtime_ns) == (
        written.st_ino,
        written.st_mtime_ns,
    )
    before.check_weights(run, "recovered/weights.safetensors")
    expected = before.json("recovered/metrics.json")
    for scores, expected_scores in zip(evaluations(run), expected, strict=True):
        before.check_scores(scores, expected_scores)


def test_damaged_cached_layers_are_recomputed(
    before: Version, layers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = copied(layers)
    content = bytearray(vectors.read_bytes())
    content[3] ^= 1
    vectors.write_bytes(content)
    run = "runs/ner_interrupted"
    assert main(["train", "configs/ner.json", "-s", run, "--recover"]) == 0
    assert "block 0 of vectors.bin has changed" in capsys.readouterr().err
    before.check_weights(Path(run), "recovered/weights.safetensors")


def test_prediction_resumes(before: Version) -> None:
    journal = Path("interrupted/predictions.jsonl.partial/done.jsonl")
    (done,) = journal.read_text().splitlines()
    predictions = json.loads(done)
    predictions[0] = ["O"] * len(predictions[0])
    journal.write_text(json.dumps(predictions) + "\n")

    assert main([*PREDICT, "interrupted/predictions.jsonl", "--resume"]) == 0

    first, *others = lines("interrupted/predictions.jsonl")
    assert set(first["tags"]) == {"O"}
    before.check_predictions(others, before.json("predictions.jsonl")[1:])


def test_embedding_one_array_resumes(before: Version) -> None:
    assert main([*EMBED, "interrupted/vectors.npy", "--resume"]) == 0
    resumed = np.load("interrupted/vectors.npy")
    before.check_arrays({"all": resumed}, {"all": np.load(before.expected / "vectors.npy")})
