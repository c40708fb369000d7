"""Which runs of a study are not trained, because another study has their records."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from elmo_framework.commands.main import main
from elmo_framework.errors import RunError
from elmo_framework.experiment.metadata import digests_of_data
from elmo_framework.experiment.references import external_models
from elmo_framework.io.files import digest
from elmo_framework.study.record import Record, read_record, write_record
from elmo_framework.study.reuse import reusable_records
from elmo_framework.study.state import PlannedRun, StudyState
from tests.experiment.jobs import DATA
from tests.experiment.studies import (
    SCORE,
    record_of,
    state_of,
    study,
    tagger,
    with_test_data,
    write,
)
from tests.unit.study.studies import CONFIG

_OTHER = {"base": {}, "narrow": {"model": {"encoder": {"hidden_size": 3}}}}


def digests(run: PlannedRun) -> dict[str, Any]:
    return {"data": digests_of_data(run.cell.parsed.build().files()), "bilm": {}}


def other_study(
    folder: Path, raw: dict[str, Any] | None = None, **changes: Any
) -> tuple[Path, Record]:
    """Write the record of the first run of a study with other names; `none` is its `base`."""
    variants = {"configs": {"tags": {"config": tagger(), "variants": _OTHER}}}
    other = state_of(raw or study(**variants), folder / "other")
    run = other.runs()[0]
    record = record_of(run.plan, other, **{"digests": digests(run), **changes})
    return folder / "other", record


def reused(state: StudyState, *folders: Path) -> list[str]:
    return [each.record.name for each in reusable_records(state, folders)]


def test_record_of_an_equal_run_is_copied_with_its_terms(tmp_path: Path) -> None:
    other, record = other_study(tmp_path)
    (other / "results/tags/base/seed-1.validation.npz").write_bytes(b"terms")
    state = state_of(study(), tmp_path / "study")
    (found,) = reusable_records(state, [other])
    assert found.copy_to(state)
    copied = read_record(tmp_path / "study/results/ner/none/seed-1.json")
    assert (copied.config, copied.variant, copied.origin) == (
        "ner",
        "none",
        "other: tags/base/seed-1",
    )
    assert copied.validation == record.validation
    terms = tmp_path / "study/results/ner/none/seed-1.validation.npz"
    assert terms.read_bytes() == b"terms"
    assert state.state(state.runs()[0]) == "done"
    assert reused(state, other) == []


def test_copy_of_a_copy_names_where_it_was_trained(tmp_path: Path) -> None:
    other, _ = other_study(tmp_path, origin="first: ner/none/seed-1")
    (found,) = reusable_records(state_of(study(), tmp_path / "study"), [other])
    assert found.record.origin == "first: ner/none/seed-1"


@pytest.mark.parametrize(
    "changes",
    [
        {"digests": {"data": {"train.txt": "0" * 64}, "bilm": {}}},
        {"is_pruned": True},
        {"validation": {"loss": 1.0}},
        {"seed": 2},
        {"experiment": {**CONFIG, "random_seed": 1}},
    ],
    ids=["data", "pruned", "metric", "seed", "config"],
)
def test_other_runs_are_trained(tmp_path: Path, changes: dict[str, Any]) -> None:
    other, record = other_study(tmp_path)
    path = other / "results/tags/base/seed-1.json"
    write_record(path, Record(**{**vars(record), **changes}))
    assert reused(state_of(study(), tmp_path / "study"), other) == []


def test_run_with_another_bilm_is_trained(tmp_path: Path) -> None:
    elmo = {"type": "elmo_token_embedder", "bilm": "mini"}
    raw = study(
        configs={"ner": {"config": tagger()}},
        variants={"elmo": {"model": {"embedder": {"token_embedders": {"elmo": elmo}}}}},
    )
    state = state_of(raw, tmp_path / "study")
    (model,) = external_models(state.runs()[0].cell.parsed)
    known = {**digests(state.runs()[0]), "bilm": {model.module: model.digest()}}
    other, record = other_study(tmp_path, raw, digests=known)
    assert reused(state, other) == ["ner/elmo/seed-1"]
    moved = json.loads(json.dumps(record.experiment).replace('"mini"', '"/moved/mini"'))
    assert moved != record.experiment
    content = {**vars(record), "experiment": moved}
    write_record(other / "results/ner/elmo/seed-1.json", Record(**content))
    assert reused(state, other) == ["ner/elmo/seed-1"]
    known["bilm"] = {model.module: "0" * 64}
    content = {**vars(record), "digests": known}
    write_record(other / "results/ner/elmo/seed-1.json", Record(**content))
    assert reused(state, other) == []


def test_run_with_other_word_vectors_is_trained(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("Anna 1 2\n")
    tokens = {"type": "embedding", "embedding_dim": 2, "pretrained_file": str(vectors)}
    model = {**tagger()["model"], "embedder": {"token_embedders": {"tokens": tokens}}}
    raw = study(configs={"ner": {"config": tagger(model=model)}})
    state = state_of(raw, tmp_path / "study")
    key = "model.embedder.token_embedders.tokens.pretrained_file"
    known = {**digests(state.runs()[0]), "files": {key: digest([vectors])}}
    other, record = other_study(tmp_path, raw, digests=known)
    path = other / f"results/{record.name}.json"
    assert reused(state, other) == ["ner/default/seed-1"]
    write_record(path, Record(**{**vars(record), "digests": {**known, "files": {key: "0" * 64}}}))
    assert reused(state, other) == []
    write_record(path, Record(**{**vars(record), "digests": digests(state.runs()[0])}))
    assert reused(state, other) == ["ner/default/seed-1"]  # of a version without these digests


def test_final_takes_only_scores_of_the_same_test_data(tmp_path: Path) -> None:
    own = {"test": digest([DATA / "valid.txt"])}
    state = state_of(with_test_data(), tmp_path / "study", is_final=True)
    known = digests(state.runs()[0])
    other, record = other_study(tmp_path, with_test_data(), digests={**known, **own})
    assert reused(state, other) == []  # without scores on test data
    path = other / f"results/{record.name}.json"
    write_record(path, Record(**{**vars(record), "test": {SCORE: 0.4}}))
    assert reused(state, other) == ["ner/default/seed-1"]
    content = {**vars(record), "test": {SCORE: 0.4}, "digests": {**known, "test": "0" * 64}}
    write_record(path, Record(**content))
    assert reused(state, other) == []
    (found,) = reusable_records(state_of(with_test_data(), tmp_path / "study"), [other])
    assert found.record.test is None


def test_scores_on_test_data_are_copied_at_the_end(tmp_path: Path) -> None:
    raw = study(configs={"ner": {"config": tagger(test_fraction=0.1)}})
    other, record = other_study(tmp_path, raw, test={SCORE: 0.4})
    (other / f"results/{record.name}.test.npz").write_bytes(b"terms")
    first = state_of(raw, tmp_path / "study")
    (found,) = reusable_records(first, [other])
    assert found.copy_to(first)
    path, terms = first.folder.record(record.name), first.folder.terms(record.name, "test")
    assert read_record(path).test is None
    assert not terms.exists()
    final = state_of(raw, tmp_path / "study", is_final=True)
    (found,) = reusable_records(final, [other])
    assert found.copy_to(final)
    assert read_record(path).test == {SCORE: 0.4}
    assert terms.read_bytes() == b"terms"


def test_run_that_another_process_trains_is_left_to_it(tmp_path: Path) -> None:
    other, _ = other_study(tmp_path)
    state = state_of(study(), tmp_path / "study")
    (found,) = reusable_records(state, [other])
    with state.folder.lock("ner/none/seed-1"):
        assert not found.copy_to(state)
    assert not state.folder.record("ner/none/seed-1").exists()


def test_run_that_another_process_has_trained_since_is_left_as_it_is(tmp_path: Path) -> None:
    other, _ = other_study(tmp_path)
    state = state_of(study(), tmp_path / "study")
    (found,) = reusable_records(state, [other])
    trained = record_of(found.run.plan, state_of(study(), tmp_path / "study"), score=0.7)
    assert not found.copy_to(state)
    assert read_record(tmp_path / "study/results/ner/none/seed-1.json") == trained


def test_run_that_was_trained_here_is_scored_here(tmp_path: Path) -> None:
    raw = study(configs={"ner": {"config": tagger(test_fraction=0.1)}})
    other, _ = other_study(tmp_path, raw, test={SCORE: 0.4})
    state = state_of(raw, tmp_path / "study", is_final=True)
    (run,) = state.runs()
    record_of(run.plan, state, digests=digests(run))
    assert state.state(run) == "unscored"
    assert reused(state, other) == []


def test_run_that_has_begun_here_is_continued(tmp_path: Path) -> None:
    other, _ = other_study(tmp_path)
    state = state_of(study(), tmp_path / "study")
    (found,) = reusable_records(state, [other])
    config = state.folder.run(found.record.name).config
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(found.run.cell.experiment_of(found.run.plan)))
    assert state.state(found.run) == "unfinished"
    assert reused(state, other) == []


def test_training_and_validation_data_are_not_interchangeable(tmp_path: Path) -> None:
    paths = {"train_data_path": "a/data.txt", "validation_data_path": "b/data.txt"}
    folds = {key: str(tmp_path / path) for key, path in paths.items()}
    for path, name in zip(folds.values(), ("train.txt", "valid.txt"), strict=True):
        Path(path).parent.mkdir()
        copyfile(DATA / name, path)
    swapped = dict(zip(folds, reversed(folds.values()), strict=True))
    other, _ = other_study(tmp_path, study(configs={"ner": {"config": tagger(**folds)}}))
    state = state_of(study(configs={"ner": {"config": tagger(**swapped)}}), tmp_path / "study")
    assert reused(state, other) == []


def test_data_with_another_path_are_the_same(tmp_path: Path) -> None:
    moved = tmp_path / "moved.txt"
    copyfile(tagger()["train_data_path"], moved)
    other, _ = other_study(tmp_path)
    raw = study(configs={"ner": {"config": tagger(train_data_path=str(moved))}})
    assert reused(state_of(raw, tmp_path / "study"), other) == ["ner/default/seed-1"]


def test_file_that_no_digest_knows_has_the_same_path(tmp_path: Path) -> None:
    def with_vectors(path: str) -> dict[str, Any]:
        tokens = {"type": "embedding", "pretrained_file": str(tmp_path / path)}
        change = {"model": {"embedder": {"token_embedders": {"tokens": tokens}}}}
        return study(configs={"ner": {"config": tagger()}}, variants={"vectors": change})

    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "vectors.txt").write_text("Anna 0.1 0.2\n")
    other, _ = other_study(tmp_path, with_vectors("first/vectors.txt"))
    same = state_of(with_vectors("first/vectors.txt"), tmp_path / "same")
    assert reused(same, other) == ["ner/vectors/seed-1"]
    (tmp_path / "second/vectors.txt").unlink()
    assert reused(state_of(with_vectors("second/vectors.txt"), tmp_path / "study"), other) == []


def test_run_that_starts_from_other_weights_is_trained(tmp_path: Path) -> None:
    raw = study(configs={"ner": {"config": tagger(init_from={"path": "mini"})}})
    other, _ = other_study(tmp_path, raw)
    assert reused(state_of(raw, tmp_path / "study"), other) == []


def test_folder_without_records_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"--reuse .*nothing: this folder has no records"):
        reusable_records(state_of(study(), tmp_path / "study"), [tmp_path / "nothing"])


def test_command_lists_and_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, _ = other_study(tmp_path)
    command = ["study", str(write(tmp_path, study())), "-s", str(tmp_path / "study")]
    assert main([*command, "--reuse", str(other), "--dry-run"]) == 0
    assert "ner/none/seed-1  in other: tags/base/seed-1" in capsys.readouterr().out
    assert not (tmp_path / "study").exists()
    assert main([*command, "--reuse", str(other)]) == 0
    messages = capsys.readouterr().err
    assert "ner/none/seed-1: its record is that of other: tags/base/seed-1" in messages
    assert "1 run done" in messages
    table = (tmp_path / "study/table.md").read_text()
    assert "2 records; 1 copied from other studies" in table


def test_command_checks_all_configs_before_it_reads_the_other_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, _ = other_study(tmp_path)
    wrong = {"a": {"test_data_path": 5}, "b": {"trainer": {"patience": "no"}}}
    raw = study(configs={"ner": {"config": tagger(test_data_path=None), "variants": wrong}})
    command = ["study", str(write(tmp_path, raw)), "-s", str(tmp_path / "study")]
    assert main([*command, "--reuse", str(other)]) == 2
    messages = capsys.readouterr().err
    assert "ner/a: test_data_path: Input should be " in messages
    assert "ner/b: trainer.patience: Input should be " in messages
