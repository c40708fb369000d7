"""What the first version has written is read, recovered and continued, with equal results.

Its runs recorded no relative path of their biLM, so that they need `--bilm` after a move.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from tests.compatibility.versions import Version, hdf5_arrays, npy_arrays
from tests.experiment.jobs import evaluations
from tests.fixtures.earlier_jobs import SENTENCES, TASKS, VECTORS

ON_BILM = {"ner", "sst", "srl", "coreference", "ner_cached"}
ELMO = "model.embedder.token_embedders.elmo"


def arrays(path: Path) -> dict[str, np.ndarray]:
    return npy_arrays(path) if path.is_dir() else hdf5_arrays(path)


@pytest.mark.parametrize("name", TASKS)
def test_a_run_scores_and_predicts_as_before(first: Version, name: str) -> None:
    bilm = ["--bilm", "runs/bilm"] if name in ON_BILM else []
    output = ["--output-file", "predictions.jsonl", *bilm]
    assert main(["predict", f"runs/{name}", f"inputs/{name}.jsonl", *output]) == 0
    lines = Path("predictions.jsonl").read_text().splitlines()
    expected = first.json(f"predictions/{name}.jsonl")
    first.check_predictions([*map(json.loads, lines)], expected)

    run = load(f"runs/{name}", device="cpu", bilm="runs/bilm" if bilm else ())
    scores = run.evaluate(f"data/{TASKS[name]}")
    first.check_scores(scores, first.json("scores.json")[name])


def test_a_bilm_has_the_perplexity_of_before(first: Version) -> None:
    scores = load("runs/bilm", device="cpu").evaluate("data/held_out.txt")
    first.check_scores(scores, first.json("scores.json")["bilm"])


@pytest.mark.parametrize("name", ["bilm_on_corpus", "ner", "squad"])
def test_recovery_gives_the_weights_of_before(first: Version, name: str) -> None:
    run = Path(f"runs/{name}_interrupted")
    assert main(["train", f"configs/{name}.json", "-s", str(run), "--recover"]) == 0
    first.check_weights(run, f"recovered/{name}/weights.safetensors")
    expected = first.json(f"recovered/{name}/metrics.json")
    for scores, before in zip(evaluations(run), expected, strict=True):
        first.check_scores(scores, before)


def test_a_bilm_is_exported_with_its_weights(first: Version) -> None:
    assert main(["export", "runs/bilm", "--output-dir", "exported"]) == 0
    options = [
        Path(folder, "options.json").read_text() for folder in ("exported", "runs/bilm/bilm")
    ]
    assert json.loads(options[0]) == json.loads(options[1])
    exported = hdf5_arrays(Path("exported/weights.hdf5"))
    before = hdf5_arrays(Path("runs/bilm/bilm/weights.hdf5"))
    assert exported.keys() == before.keys()
    assert all(np.array_equal(exported[name], before[name]) for name in before)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_those_of_before(first: Version, name: str) -> None:
    output = ["--output-file", name, *VECTORS[name]]
    assert main(["embed", "runs/bilm", *SENTENCES, *output]) == 0
    first.check_arrays(arrays(Path(name)), arrays(first.expected / name))


def test_a_mix_is_taken_from_a_run(first: Version) -> None:
    output = ["--output-file", "mixed.hdf5", "--layers", "mixed(runs/ner)"]
    assert main(["embed", "runs/bilm", *SENTENCES, *output]) == 0
    first.check_arrays(hdf5_arrays(Path("mixed.hdf5")), hdf5_arrays(first.expected / "mixed.hdf5"))


@pytest.mark.parametrize("name", VECTORS)
def test_embedding_resumes(first: Version, name: str) -> None:
    output = ["--output-file", f"interrupted/{name}", *VECTORS[name]]
    assert main(["embed", "runs/bilm", *SENTENCES, *output, "--resume"]) == 0
    first.check_arrays(arrays(Path("interrupted", name)), arrays(first.expected / name))
    assert not Path("interrupted", f"{name}.partial").exists()


def test_resumed_embedding_keeps_what_is_done(first: Version) -> None:
    with h5py.File("interrupted/vectors.hdf5.partial/result", "r+") as file:
        file["0"][...] = 7
    output = ["--output-file", "interrupted/vectors.hdf5"]
    assert main(["embed", "runs/bilm", *SENTENCES, *output, "--resume"]) == 0
    vectors = hdf5_arrays(Path("interrupted/vectors.hdf5"))
    expected = hdf5_arrays(first.expected / "vectors.hdf5")
    first.check_arrays(vectors, {**expected, "0": np.full_like(expected["0"], 7)})


def test_preparing_a_corpus_resumes(first: Version) -> None:
    flags = ["--output-dir", "interrupted/corpus", "--held-out", "5", "--resume"]
    assert main(["prepare", "data/text.txt", *flags]) == 0
    corpus, before = Path("interrupted/corpus"), Path("corpus")
    names = sorted(str(path.relative_to(before)) for path in before.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(corpus)) for path in corpus.rglob("*.*"))
    for name in set(names) - {"corpus.json"}:
        assert (corpus / name).read_bytes() == (before / name).read_bytes(), name
    manifests = [json.loads((root / "corpus.json").read_text()) for root in (corpus, before)]
    for manifest in manifests:
        manifest["settings"]["texts"] = [Path(path).name for path in manifest["settings"]["texts"]]
    assert manifests[0] == manifests[1]


def test_resuming_on_another_text_is_refused(
    first: Version, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("data/text.txt").open("a") as file:
        file.write("One more .\n")
    flags = ["--output-dir", "interrupted/corpus", "--held-out", "5", "--resume"]
    assert main(["prepare", "data/text.txt", *flags]) == 2
    assert "the text is not the one that the interrupted job read" in capsys.readouterr().err


def test_cached_layers_without_checksums_are_recomputed(
    first: Version, layers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (store,) = Path("cache/layers").iterdir()
    shard = shutil.copytree(store, layers / store.name) / "00000"
    before = np.fromfile(shard / "vectors.bin", np.float32)
    shutil.rmtree("runs/ner_cached")

    assert main(["train", "configs/ner_cached.json", "-s", "runs/ner_cached"]) == 0

    messages = capsys.readouterr().err
    assert "damaged: an earlier version wrote it without checksums" in messages
    assert (shard / "checksums.npy").exists()
    first.check_arrays({"all": np.fromfile(shard / "vectors.bin", np.float32)}, {"all": before})
    scores = load("runs/ner_cached", device="cpu").evaluate("data/ner.txt")
    first.check_scores(scores, first.json("scores.json")["ner_cached"])
