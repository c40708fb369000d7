"""Archives of AllenNLP in place of runs."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.compat.allennlp.archive import import_archive
from elmo_framework.compat.allennlp.recognize import is_allennlp_archive
from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.archive import archive_run
from elmo_framework.io import archives
from elmo_framework.model.weights import load_tensors, save_tensors
from tests.conftest import ROOT

ARCHIVES = ROOT / "tests/fixtures/allennlp"
DATA = ROOT / "tests/fixtures/first_version/data"
TAGGER = ARCHIVES / "crf_tagger.tar.gz"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path / "cache"))


@pytest.fixture(name="scores")
def _scores(tmp_path: Path) -> dict[str, float]:
    import_archive(TAGGER, tmp_path / "run")
    return load(tmp_path / "run").evaluate(DATA / "ner.txt")


def test_load_takes_an_archive_of_allennlp(
    scores: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load(TAGGER)
    assert run.evaluate(DATA / "ner.txt") == scores
    assert "model.calculate_span_f1" in capsys.readouterr().err
    again = load(str(TAGGER))  # from the cache
    assert capsys.readouterr().err == ""
    assert pickle.loads(pickle.dumps(again)).evaluate(DATA / "ner.txt") == scores
    assert load([TAGGER, tmp_path / "run"]).evaluate(DATA / "ner.txt").items() <= scores.items()


def test_evaluate_takes_an_archive_of_allennlp(
    scores: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(TAGGER), str(DATA / "ner.txt"), "--format", "json"]
    assert main([*command, "--output-file", str(tmp_path / "scores.json")]) == 0
    (printed,) = json.loads(capsys.readouterr().out).values()
    assert {name: printed[name] for name in scores} == scores
    assert (tmp_path / "scores.json").is_file()


@pytest.fixture(name="others")
def _others(scores: dict[str, float], tmp_path: Path) -> tuple[Path, Path]:
    """Files of other weights than those of the tagger: of AllenNLP, and of its run."""
    with tarfile.open(TAGGER) as tar:
        content = tar.extractfile("weights.th")
        assert content is not None
        theirs = torch.load(io.BytesIO(content.read()), weights_only=True)
    theirs["tag_projection_layer._module.weight"].zero_()
    torch.save(theirs, tmp_path / "model_state_epoch_3.th")
    ours = load_tensors(tmp_path / "run/weights.safetensors")
    ours["projection.weight"].zero_()
    save_tensors(ours, tmp_path / "model.safetensors")
    return tmp_path / "model_state_epoch_3.th", tmp_path / "model.safetensors"


def test_another_file_of_weights_is_loaded(
    scores: dict[str, float], others: tuple[Path, Path], tmp_path: Path
) -> None:
    load(TAGGER)  # is not taken from the cache for other weights
    expected = load(tmp_path / "run", weights_file=others[1]).evaluate(DATA / "ner.txt")
    assert expected != scores
    run = load(TAGGER, weights_file=others[0])
    assert run.evaluate(DATA / "ner.txt") == expected
    assert pickle.loads(pickle.dumps(run)).evaluate(DATA / "ner.txt") == expected
    with pytest.raises(RunError, match="for one run, not for an ensemble"):
        load([tmp_path / "run", tmp_path / "run"], weights_file=others[1])
    with pytest.raises(DataError, match=r"model\.safetensors is damaged, or has other objects"):
        load(TAGGER, weights_file=others[1])
    with pytest.raises(DataError, match="file of weights not found"):
        load(TAGGER, weights_file=tmp_path / "none.th")


@pytest.mark.parametrize("is_archive", [True, False])
def test_evaluate_and_predict_take_weights_and_a_batch_size(
    is_archive: bool,
    others: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = others[0 if is_archive else 1]
    run, data = str(TAGGER if is_archive else tmp_path / "run"), str(DATA / "ner.txt")
    loaded = load(run, weights_file=weights)
    flags = ["--weights-file", str(weights), "--batch-size", "3"]
    assert main(["evaluate", run, data, "--format", "json", *flags]) == 0
    (printed,) = json.loads(capsys.readouterr().out).values()
    assert printed["loss"] == pytest.approx(loaded.evaluate(DATA / "ner.txt")["loss"], rel=1e-5)
    assert main(["predict", run, data, *flags]) == 0
    predicted = [json.loads(line)["tags"] for line in capsys.readouterr().out.splitlines()]
    assert predicted == [list(tags["tags"]) for tags in loaded.predict_file(DATA / "ner.txt")]
    calibrated = ["evaluate", run, "--calibrate", data, "--weights-file", str(weights)]
    assert main(calibrated) == 2
    assert main(["evaluate", run, data, "--ensemble", run, "--weights-file", str(weights)]) == 2


def test_a_batch_size_replaces_that_of_the_config() -> None:
    run = load(TAGGER)
    sizes = list[int]()
    resized = replace(run, experiment=run.experiment.with_batch_size(3))
    resized.sums(DATA / "ner.txt", note=lambda batch, _: sizes.append(len(batch.text.mask)))
    assert set(sizes[:-1]) == {3}
    assert sizes[-1] <= 3
    assert run.experiment.validation_data_loader.batch_size != 3


def test_predict_takes_an_archive_of_allennlp(tmp_path: Path) -> None:
    target = tmp_path / "tags.jsonl"
    assert main(["predict", str(TAGGER), str(DATA / "ner.txt"), "--output-file", str(target)]) == 0
    expected = json.loads((ARCHIVES / "expected.json").read_text())["crf_tagger"]
    predicted = [json.loads(line)["tags"] for line in target.read_text().splitlines()]
    assert predicted == [each["tags"] for each in expected]


def test_an_imported_archive_is_listed_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    load(TAGGER)
    (folder,) = (path for path in (archives.cache_root() / "archives").iterdir() if path.is_dir())
    capsys.readouterr()
    assert main(["cache"]) == 0
    assert f"archives/{folder.name}" in capsys.readouterr().out
    assert main(["cache", "clear", f"archives/{folder.name}"]) == 0
    assert not folder.exists()


def test_a_failed_import_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    path = archive(tmp_path, {"config.json": b"{}"})
    with pytest.raises(DataError, match=r"it has no weights\.th"):
        load(path)
    assert not [each for each in (tmp_path / "cache/archives").iterdir() if each.is_dir()]


def test_one_bilm_is_named_for_an_archive() -> None:
    load(TAGGER)  # is not taken from the cache for another biLM
    with pytest.raises(DataError, match="its model reads no biLM; remove --bilm"):
        load(TAGGER, bilm="mini")
    with pytest.raises(RunError, match="reads one biLM; name one with --bilm"):
        load(TAGGER, bilm=["mini", "small"])


def test_an_imported_archive_is_not_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ARCHIVES / "bcn.tar.gz")
    assert main(["evaluate", path, "--calibrate", str(DATA / "sst.txt")]) == 2
    assert "an archive is read-only" in capsys.readouterr().err


def archive(tmp_path: Path, members: dict[str, bytes]) -> Path:
    path = tmp_path / "made.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_only_archives_of_allennlp_are_recognized(tmp_path: Path) -> None:
    assert is_allennlp_archive(TAGGER)
    assert is_allennlp_archive(archive(tmp_path, {"./weights.th": b""}))
    assert not is_allennlp_archive(archive(tmp_path, {"model/config.json": b""}))
    (tmp_path / "text").write_text("text")
    assert not is_allennlp_archive(tmp_path / "text")
    assert not is_allennlp_archive("mini")
    import_archive(TAGGER, tmp_path / "run")
    archive_run(tmp_path / "run", tmp_path / "run.tar.gz")
    assert not is_allennlp_archive(tmp_path / "run.tar.gz")
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(TAGGER.read_bytes()[:40])
    with pytest.raises(DataError, match=r"neither a folder nor an archive|is damaged"):
        load(cut)


def test_members_are_limited_in_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = {"config.json": b"{}", "a": bytes(600_000), "b": bytes(600_000)}
    path = archive(tmp_path, members)
    monkeypatch.setattr(archives, "_MOST_BYTES", 1_000_000)
    with pytest.raises(DataError, match="would have 1,200,002 bytes, which is suspicious"):
        import_archive(path, tmp_path / "run")
    monkeypatch.setattr(archives, "_MOST_BYTES", 1_200_002)
    with pytest.raises(DataError, match=r"it has no weights\.th"):
        import_archive(path, tmp_path / "run")
