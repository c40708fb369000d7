"""`elmo study` from a file to its records."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.experiment.terms import ExampleTerms, score_function
from elmo_framework.io.files import digest
from elmo_framework.layers.encoder_files import encoder_reference
from elmo_framework.study import job as job_module
from elmo_framework.study.record import read_records
from tests.experiment.jobs import DATA, numbers
from tests.experiment.studies import SCORE, study, tagger, with_test_data, write

BOTH = ["ner/none/seed-1", "ner/wide/seed-1"]


def run(path: Path, folder: Path, *flags: str) -> int:
    return main(["study", str(path), "-s", str(folder), *flags])


def results(folder: Path) -> dict[str, Any]:
    """Return the records without what differs from one training to the next."""
    records = {record.name: vars(record) for record in read_records(folder / "results")}
    return {
        name: {key: record[key] for key in record if key not in ("minutes", "versions")}
        for name, record in records.items()
    }


def terms(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "results").rglob("*.npz")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of two runs; `study.json` next to it."""
    folder = tmp_path_factory.mktemp("study")
    assert run(write(folder, study()), folder / "study") == 0
    return folder / "study"


def test_each_run_leaves_a_record_with_its_scores_and_terms(finished: Path) -> None:
    records = read_records(finished / "results")
    assert [record.name for record in records] == BOTH
    for record in records:
        metrics = json.loads((finished / "runs" / record.name / "metrics.json").read_text())
        expected = {
            name.removeprefix("best_validation_"): value
            for name, value in numbers(metrics).items()
            if name.startswith("best_validation_")
        }
        assert record.validation == pytest.approx(expected)
        assert record.test is None
        loaded = ExampleTerms.load(finished / f"results/{record.name}.validation.npz")
        scores = score_function(record.experiment, source="record")(loaded.sums())
        assert scores[SCORE] == record.validation[SCORE]
    assert records[1].experiment["model"]["encoder"]["hidden_size"] == 12


def test_records_hold_no_path_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text((DATA / "train.txt").read_text())
    config = tagger(train_data_path="train.txt", validation_data_path="train.txt")
    raw = study(configs={"ner": {"config": config}})
    assert run(write(tmp_path, raw), Path("study")) == 0
    for path in (tmp_path / "study/results").rglob("*.json"):
        assert str(tmp_path) not in path.read_text()
        assert list(json.loads(path.read_text())["digests"]["data"]) == ["train.txt"]


@pytest.mark.parametrize("is_tuned", [False, True])
def test_record_names_the_bilm_that_a_run_began_with(
    bilm: Path, tmp_path: Path, is_tuned: bool
) -> None:
    elmo = {"type": "elmo_token_embedder", "bilm": str(bilm), "requires_grad": is_tuned}
    change = {"model": {"embedder": {"token_embedders": {"elmo": elmo}}}}
    raw = study(configs={"ner": {"config": tagger(), "variants": {"elmo": change}}})
    assert run(write(tmp_path, raw), tmp_path / "study") == 0
    (record,) = read_records(tmp_path / "study/results")
    assert record.digests["bilm"] == {
        "embedder.token_embedders.elmo": encoder_reference(bilm).digest
    }
    weights = [value for name, value in record.monitored.items() if ".mix.s_" in name]
    assert sum(weights) == pytest.approx(1)  # of the layers, at the best step
    assert run(write(tmp_path, raw), tmp_path / "again", "--reuse", str(tmp_path / "study")) == 0
    (copied,) = read_records(tmp_path / "again/results")
    assert copied.origin == "study: ner/elmo/seed-1"


def test_finished_study_needs_neither_runs_nor_data(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "copy").mkdir()
    (finished / "results").rename(tmp_path / "copy/results")
    gone = study()
    gone["configs"]["ner"]["config"]["train_data_path"] = "gone/train.txt"
    try:
        assert run(write(tmp_path, gone), tmp_path / "copy") == 0
        assert not (tmp_path / "copy/runs").exists()
    finally:
        (tmp_path / "copy/results").rename(finished / "results")
    assert "nothing to do: " in capsys.readouterr().err


def test_other_config_is_refused_and_keeps_the_record(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = study(variants={"none": {"trainer.optimizer.lr": 0.5}})
    before = results(finished)
    assert run(write(tmp_path, changed), finished) == 2
    error = capsys.readouterr().err
    assert "ner/none/seed-1: trainer.optimizer.lr: 0.02 -> 0.5" in error
    assert "--force" in error
    assert "ner/wide" not in error
    assert results(finished) == before


def test_force_trains_runs_of_another_config_again(tmp_path: Path) -> None:
    one = {"ner": {"config": tagger()}}
    assert run(write(tmp_path, study(configs=one)), tmp_path / "study") == 0
    changed = study(configs=one, variants={"default": {"trainer.optimizer.lr": 0.5}})
    assert run(write(tmp_path, changed), tmp_path / "study", "--force") == 0
    (record,) = read_records(tmp_path / "study/results")
    assert record.experiment["trainer"]["optimizer"]["lr"] == 0.5


def test_test_data_are_read_for_final_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    test_data = tmp_path / "test.txt"
    test_data.write_text((DATA / "valid.txt").read_text())
    original = Path.open

    def noting(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", noting)
    raw = with_test_data()
    raw["configs"]["ner"]["config"] |= {"test_data_path": str(test_data), "evaluate_on_test": True}
    path, folder = write(tmp_path, raw), tmp_path / "study"
    assert run(path, folder) == 0
    assert test_data not in opened
    (record,) = read_records(folder / "results")
    assert record.test is None
    assert run(path, folder, "--final") == 0
    assert test_data in opened
    (final,) = read_records(folder / "results")
    assert final.test is not None
    assert final.test[SCORE] == final.validation[SCORE]
    assert final.digests == record.digests | {"test": digest([test_data])}
    assert (folder / "results/ner/default/seed-1.test.npz").exists()


def test_final_without_weights_names_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = write(tmp_path, with_test_data()), tmp_path / "study"
    assert run(path, folder) == 0
    rmtree(folder / "runs")
    assert run(path, folder, "--final") == 1
    error = capsys.readouterr().err
    assert "these weights are gone" in error
    assert str(folder / "results/ner/default/seed-1.json") in error


def test_failing_run_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, path, folder = job_module.train_assembly, write(tmp_path, study()), tmp_path / "study"

    def failing(config: Any, directory: Path, **options: Any) -> Any:
        if "none" in str(directory):
            raise OSError(28, "No space left on device")
        return train(config, directory, **options)

    monkeypatch.setattr(job_module, "train_assembly", failing)
    assert run(path, folder) == 1
    error = capsys.readouterr().err
    assert f"ner/none/seed-1 failed (log: {folder}/logs/ner/none/seed-1.log)" in error
    assert "No space left on device" in error
    assert "1 run done, 1 failure (run the same command to try again)" in error
    assert list(results(folder)) == ["ner/wide/seed-1"]
    monkeypatch.undo()
    assert run(path, folder) == 0  # tried again
    assert list(results(folder)) == BOTH


def test_log_that_cannot_be_written_is_a_failure_of_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = write(tmp_path, study()), tmp_path / "study"
    log = folder / "logs/ner/none/seed-1.log"
    log.mkdir(parents=True)
    assert run(path, folder) == 1
    error = capsys.readouterr().err
    assert f"ner/none/seed-1 failed (log: {log}):" in error
    assert "Is a directory" in error
    assert list(results(folder)) == ["ner/wide/seed-1"]


@pytest.mark.parametrize("point", ["train_assembly", "_score", "write_record"])
def test_study_killed_at_any_point_continues(
    point: str, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before and after each part of a job leaves what the next start continues."""
    path, folder = write(tmp_path, study()), tmp_path / "study"
    original = getattr(job_module, point)
    for is_before in (True, False):
        with monkeypatch.context() as patch:

            def killed(*words: Any, is_before: bool = is_before, **options: Any) -> Any:
                if not is_before:
                    original(*words, **options)
                raise SystemExit("killed")

            patch.setattr(job_module, point, killed)
            with pytest.raises(SystemExit):
                run(path, folder)
    assert run(path, folder) == 0
    assert results(folder) == results(finished)
    assert terms(folder) == terms(finished)
