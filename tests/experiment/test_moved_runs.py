"""A run and the biLM that it reads are found again after they have been moved."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from huggingface_hub import constants

from elmo_framework import load, load_bilm
from elmo_framework.bilm.files.load import bilm_files
from elmo_framework.commands.main import main
from elmo_framework.errors import RunError
from elmo_framework.io.archives import unpacked
from elmo_framework.io.files import digest
from tests.experiment.jobs import DATA, ROOT, numbers, tagging_with, train
from tests.hub_server import serving
from tests.numpy_bilm import NumpyBiLm

NER = "experiments/ner/elmo.jsonnet"
ELMO = "model.embedder.token_embedders.elmo"
SENTENCE = ["Anna Kovacs moved to Lisbon ."]
VALID = str(DATA / "valid.txt")
Move = Callable[..., Path]


@pytest.fixture(scope="module")
def original(bilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a biLM, a head on it, one on two biLMs, and one that has tuned it."""
    root = tmp_path_factory.mktemp("original")
    shutil.copytree(bilm, root / "bilm")
    NumpyBiLm.random().save(root / "other")
    little = tagging_with(root / "bilm", **{"trainer.num_epochs": 1})
    files = bilm_files(root / "other")
    pair = {"options_file": str(files.options), "weight_file": str(files.weights)}
    output = {"type": "elmo_token_embedder", **pair}
    assert train(NER, root / "tags", little) == 0
    assert train(NER, root / "two", {**little, "model.output_embedder": output}) == 0
    assert train(NER, root / "tuned", {**little, f"{ELMO}.requires_grad": True}) == 0
    return root


@pytest.fixture
def move(original: Path, tmp_path: Path) -> Move:
    """What copies parts of the folder, as if the original place had never been."""

    def copied(*names: str) -> Path:
        root = tmp_path / "moved"
        for name in names:
            shutil.copytree(original / name, root / name)
        for path in root.glob("*/*.json"):
            text = path.read_text().replace(str(original), str(tmp_path / "gone"))
            path.write_text(text)
        return root

    return copied


def predictions(run: Path | str, **options: object) -> list[dict[str, object]]:
    return load(run, **options).predict(SENTENCE)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tags", "two", "tuned"])
def test_a_moved_run_finds_its_moved_bilms(original: Path, move: Move, name: str) -> None:
    run = move(name, "bilm", "other") / name
    assert predictions(run) == predictions(original / name)
    assert load(run).evaluate(VALID) == load(original / name).evaluate(VALID)


def test_a_run_records_its_bilm(original: Path) -> None:
    metadata = json.loads((original / "tags/metadata.json").read_text())
    files = bilm_files(original / "bilm")
    path = str(original / "bilm")
    assert metadata["references"] == {
        ELMO: {
            "sha256": digest([files.options, files.weights]),
            "files": {"bilm": {"given": path, "absolute": path, "relative": "../bilm"}},
        }
    }


def test_a_bilm_moved_elsewhere_is_named(
    original: Path, move: Move, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = move("tags", "bilm")
    run, elsewhere = root / "tags", tmp_path / "elsewhere"
    (root / "bilm").rename(elsewhere)
    assert main(["evaluate", str(run), VALID]) == 2
    expected = digest([bilm_files(elsewhere).options, bilm_files(elsewhere).weights])[:12]
    assert capsys.readouterr().err == (
        f"error: {run}: cannot find the model (SHA-256 {expected}) of {ELMO}.bilm; looked for it "
        f"at\n  {root / 'bilm'}: does not exist\n  {tmp_path / 'gone/bilm'}: does not exist\n"
        "put it back, or name its folder: --bilm PATH, or bilm=PATH in Python\n"
    )
    for flags in (["--bilm", str(elsewhere)], ["--bilm", str(elsewhere / "bilm")]):
        assert main(["evaluate", str(run), VALID, "--format", "json", *flags]) == 0
        scores = json.loads(capsys.readouterr().out)[VALID]
        assert numbers(scores) == load(original / "tags").evaluate(VALID)
    sentences = tmp_path / "sentences.txt"
    sentences.write_text(SENTENCE[0])
    assert main(["predict", str(run), str(sentences), "--bilm", str(elsewhere)]) == 0
    assert json.loads(capsys.readouterr().out) == predictions(original / "tags")[0]


@pytest.mark.parametrize("name", ["tags", "tuned"])
def test_another_bilm_is_refused(move: Move, name: str, original: Path) -> None:
    root = move(name)
    shutil.copytree(original / "other", root / "bilm")
    with pytest.raises(RunError, match=rf"{root / 'bilm'}: another model, SHA-256"):
        load(root / name)
    with pytest.raises(RunError, match=r"is not the one that the run .* was trained with"):
        load(root / name, bilm=original / "other")


def test_several_bilms_are_distinguished_by_digest(original: Path, move: Move) -> None:
    run = move("two") / "two"
    places = [original / "other", original / "bilm"]
    assert predictions(run, bilm=places) == predictions(original / "two")
    with pytest.raises(RunError, match=rf"of {ELMO}\.bilm"):
        load(run, bilm=original / "other")


def test_a_run_without_a_bilm_takes_none(bilm: Path, original: Path) -> None:
    with pytest.raises(RunError, match=r"was trained with \(no biLM\)"):
        load(bilm, bilm=original / "other")


def test_a_changed_bilm_is_refused_at_its_place(original: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(original, root)
    for path in root.glob("*/*.json"):
        path.write_text(path.read_text().replace(str(original), str(root)))
    options = root / "bilm/bilm/options.json"
    options.write_text(options.read_text() + "\n")
    for name in ("tags", "tuned"):
        with pytest.raises(RunError, match="is another model now than the one"):
            load(root / name)


def test_a_run_of_the_first_version_takes_its_bilm(original: Path, move: Move) -> None:
    root = move("tags", "tuned", "bilm")
    for name in ("tags", "tuned"):
        metadata = json.loads((root / name / "metadata.json").read_text())
        del metadata["references"]
        (root / name / "metadata.json").write_text(json.dumps(metadata))
        with pytest.raises(RunError, match="cannot find the model"):
            load(root / name)
        assert predictions(root / name, bilm=root / "bilm") == predictions(original / name)


def test_a_link_to_a_moved_run_is_followed(original: Path, move: Move, tmp_path: Path) -> None:
    root = move("tags", "bilm")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/tags").symlink_to(root / "tags")
    assert predictions(tmp_path / "links/tags") == predictions(original / "tags")


def test_the_mix_of_a_moved_run_is_found_by_its_bilm(
    original: Path, move: Move, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(SENTENCE[0])
    runs = {"there": original / "tags", "moved": move("tags", "two") / "tags"}
    for name, run in runs.items():
        words = [str(original / "bilm"), str(text), "--output-file", str(tmp_path / f"{name}.h5")]
        assert main(["embed", *words, "--layers", f"mixed({run})"]) == 0
    with h5py.File(tmp_path / "there.h5") as there, h5py.File(tmp_path / "moved.h5") as moved:
        np.testing.assert_array_equal(moved["0"][...], there["0"][...])


def test_the_mix_of_a_run_with_two_bilms_takes_the_other(
    original: Path, move: Move, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(SENTENCE[0])
    words = ["embed", str(original / "bilm"), str(text), "--output-file", str(tmp_path / "out")]
    words += ["--layers", f"mixed({move('two') / 'two'}:elmo)"]
    assert main(words) == 2
    assert "cannot find the model" in capsys.readouterr().err
    assert main([*words, "--bilm", str(original / "other")]) == 0


def test_a_bilm_without_a_mix_is_refused(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(original / "other")
    words = ["embed", other, VALID, "--output-file", str(tmp_path / "out"), "--bilm", other]
    assert main(words) == 2
    assert "--bilm belongs to --layers mixed(RUN)" in capsys.readouterr().err


def test_a_tuned_bilm_is_exported_from_a_moved_run(
    original: Path, move: Move, tmp_path: Path
) -> None:
    moved = str(move("tuned") / "tuned")
    assert main(["export", str(original / "tuned"), "--output-dir", str(tmp_path / "there")]) == 0
    flags = ["--output-dir", str(tmp_path / "here"), "--bilm", str(original / "bilm")]
    assert main(["export", moved, *flags]) == 0
    here, there = (bilm_files(tmp_path / name) for name in ("here", "there"))
    assert digest([here.options, here.weights]) == digest([there.options, there.weights])


def test_a_report_of_a_head_shows_neighbors_by_its_bilm(
    move: Move, original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, corpus = tmp_path / "page.html", tmp_path / "corpus.txt"
    corpus.write_text("Anna left .\nAnna came to Lisbon .\n")
    search = ["--corpus", str(corpus), "--query", SENTENCE[0], "--word", "Anna"]
    root = move("tags", "tuned")
    words = ["--output-file", str(page), *search]
    assert main(["report", str(root / "tags"), *words]) == 2
    assert "cannot find the model" in capsys.readouterr().err
    assert main(["report", str(root / "tags"), *words, "--bilm", str(original / "bilm")]) == 0
    assert f"biLM of {root / 'tags'}" in page.read_text()
    tuned = ["report", str(root / "tuned"), "--output-file", str(tmp_path / "tuned.html")]
    assert main([*tuned, *search, "--bilm", str(original / "bilm")]) == 2
    assert "has tuned its biLM with its task" in capsys.readouterr().err


def test_recover_works_after_a_move(
    original: Path, move: Move, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = move("tags", "tuned", "bilm", "other")
    data = {f"{split}_data_path": tmp_path / f"{split}.txt" for split in ("train", "validation")}
    for path, name in zip(data.values(), ("train", "valid"), strict=True):
        shutil.copy(DATA / f"{name}.txt", path)
    places = {key: str(path) for key, path in data.items()}
    changes = tagging_with(root / "bilm", **{"trainer.num_epochs": 1}, **places)
    weights = (original / "tags/weights.safetensors").read_bytes()
    assert train(NER, root / "tags", changes, "--recover") == 0
    assert (root / "tags/weights.safetensors").read_bytes() == weights
    assert predictions(root / "tags") == predictions(original / "tags")
    tuned = {**changes, f"{ELMO}.requires_grad": True}
    assert train(NER, root / "tuned", tuned, "--recover") == 0

    before = (root / "tags/filled_config.json").read_bytes()
    data["train_data_path"].with_name("new.txt").write_text("Anna B-PER\nleft O\n")
    for key, place in ((f"{ELMO}.bilm", "moved/other"), ("train_data_path", "new.txt")):
        another = {**changes, key: str(tmp_path / place)}
        assert train(NER, root / "tags", another, "--recover") == 2
        assert f"it differs in\n  {key}: " in capsys.readouterr().err
    another = {**tuned, f"{ELMO}.bilm": str(root / "other")}
    assert train(NER, root / "tuned", another, "--recover") == 2
    assert f"it differs in\n  {ELMO}.bilm: " in capsys.readouterr().err
    assert (root / "tags/filled_config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["tags", "two", "tuned"])
def test_an_archive_needs_nothing_else(original: Path, move: Move, name: str) -> None:
    root = move(name, "bilm", "other")
    archive = root.parent / "model.tar.gz"
    assert main(["archive", str(root / name), str(archive), "--license", "cc0-1.0"]) == 0
    shutil.rmtree(root)
    run = load(archive)
    assert run.predict(SENTENCE) == predictions(original / name)
    assert run.evaluate(VALID) == load(original / name).evaluate(VALID)
    assert run.run is not None
    card = run.run.model_card.read_text()
    assert card.startswith("---\nlicense: cc0-1.0\n")
    again = root.parent / "again.tar.gz"
    assert main(["archive", str(archive), str(again)]) == 0
    assert again.read_bytes() == archive.read_bytes()


def test_an_archive_has_no_paths_of_the_machine(original: Path, tmp_path: Path) -> None:
    run, archive = shutil.copytree(original / "tags", tmp_path / "run"), tmp_path / "model.tar.gz"
    config = """{ a: '/home/me/a.txt', b: '/', c: 'x/y', d: "/home/my texts/d e.txt" } // or/and"""
    (run / "config.jsonnet").write_text(config)
    (run / "translated.jsonnet").write_text("{ a: '/home/me/a.txt' }")
    metadata = json.loads((run / "metadata.json").read_text())
    metadata["command"] = ["/opt/bin/elmo", "train", "-o", "path=/home/me/b.txt", f"{Path.cwd()}/c"]
    (run / "metadata.json").write_text(json.dumps(metadata, indent=2))
    assert main(["archive", str(run), str(archive)]) == 0
    files = {path.name: path.read_text() for path in unpacked(archive).glob("config*")}
    assert files["config.jsonnet"] == """{ a: 'a.txt', b: '/', c: 'x/y', d: "d e.txt" } // or/and"""
    kept = [path.read_text() for path in unpacked(archive).glob("*.json*")]
    assert len(kept) > 4
    assert not [text for text in kept for place in (original, ROOT, "/home") if str(place) in text]
    written = json.loads((unpacked(archive) / "metadata.json").read_text())
    assert written["command"] == ["elmo", "train", "-o", "path=b.txt", "c"]
    assert "working_directory" not in written
    (name, *_) = written["digests"]["data"]
    assert DATA.relative_to(ROOT) == Path(name).parent


def test_an_archive_without_its_bilm_asks_for_it(
    move: Move, capsys: pytest.CaptureFixture[str]
) -> None:
    root = move("tags", "bilm")
    archive, elsewhere = root.parent / "model.tar.gz", root.parent / "elsewhere"
    assert main(["archive", str(root / "tags"), str(archive), "--without-bilm"]) == 0
    assert main(["archive", str(root / "tags"), str(archive)]) == 2
    assert "already exists; pass --force" in capsys.readouterr().err
    shutil.move(root / "bilm", elsewhere)
    with pytest.raises(RunError, match="cannot find the model"):
        load(archive)
    command = ["evaluate", str(archive), VALID, "--bilm", str(elsewhere), "--format", "json"]
    assert main(command) == 0
    scores = numbers(json.loads(capsys.readouterr().out)[VALID])
    assert scores == load(root / "tags", bilm=elsewhere).evaluate(VALID)


def test_the_archive_of_a_pretraining_is_a_bilm(original: Path, tmp_path: Path) -> None:
    archive = tmp_path / "bilm.tar.gz"
    assert main(["archive", str(original / "bilm"), str(archive)]) == 0
    vectors, expected = (
        load_bilm(place).embed([["a", "b"]]) for place in (archive, original / "bilm")
    )
    assert np.array_equal(vectors[0], expected[0])


def test_an_archive_imports_no_module_that_it_names(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(original / "tags", tmp_path / "run")
    config = json.loads((run / "filled_config.json").read_text())
    (run / "filled_config.json").write_text(json.dumps({**config, "plugins": ["imported_plugin"]}))
    (tmp_path / "imported_plugin.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    monkeypatch.chdir(tmp_path)
    assert main(["archive", "run", "model.tar.gz", "--without-bilm"]) == 0
    with pytest.raises(RunError, match="pass --include-package imported_plugin if you trust it"):
        load("model.tar.gz", bilm=original / "bilm")
    assert not (tmp_path / "ran").exists()


def test_the_model_card_is_written_from_the_run(original: Path) -> None:
    card = (original / "tags/README.md").read_text()
    metadata = json.loads((original / "tags/metadata.json").read_text())
    metrics = json.loads((original / "tags/metrics.json").read_text())
    (bilm,) = metadata["digests"]["bilm"].values()
    f1, f1_of_class = (metrics[f"best_validation_f1-measure-{name}"] for name in ("overall", "PER"))
    assert f"| train | train.txt | {metadata['digests']['data'][str(DATA / 'train.txt')]} |" in card
    assert f"| {ELMO} | bilm | {bilm} |" in card
    assert f"| f1-measure-overall | validation | {f1:.4g} |" in card
    assert re.search(rf"\| PER \| validation \| .* \| {f1_of_class:.4g} \|", card)
    assert str(original) not in card


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_run_and_its_bilm_are_read_from_the_hub(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert main(["push", str(original / "tags"), "hf://me/tags", "--license", "cc0-1.0"]) == 0
        assert main(["push", str(original / "bilm/bilm"), "hf://me/bilm"]) == 0
        assert predictions("hf://me/tags") == predictions(original / "tags")
        changes = tagging_with("hf://me/bilm", **{"trainer.num_epochs": 1})
        assert train(NER, tmp_path / "run", changes) == 0
        assert load(tmp_path / "run").predict(SENTENCE) == predictions(original / "tags")
    metadata = json.loads((tmp_path / "run/metadata.json").read_text())
    place = {"given": "hf://me/bilm", "absolute": None, "relative": None}
    assert metadata["references"][ELMO]["files"] == {"bilm": place}
    # Downloaded files suffice once the server is gone.
    monkeypatch.setenv("ELMO_OFFLINE", "1")
    assert predictions("hf://me/tags") == predictions(original / "tags")
    assert load(tmp_path / "run").predict(SENTENCE) == predictions(original / "tags")
