"""Warnings about runs of a study that have read other content under the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmo_framework.study.content import differing_content
from elmo_framework.study.record import Record
from elmo_framework.study.report import write_results
from tests.unit.study.studies import CONFIG, add_record, study_state

_VECTORS = "model.embedder.token_embedders.tokens.pretrained_file"
_MODULE = "embedder.token_embedders.elmo"


def experiment(vectors: str = "glove.txt", bilm: str = "mini") -> dict[str, Any]:
    embedders = {"tokens": {"pretrained_file": vectors}, "elmo": {"bilm": bilm}}
    model = {**CONFIG["model"], "embedder": {"token_embedders": embedders}}
    return {**CONFIG, "model": model, "random_seed": 1}


def record(folder: Path, variant: str, seed: int, **digests: dict[str, str]) -> Record:
    return add_record(folder, variant, seed, 0.5, digests=digests, experiment=experiment())


def test_runs_with_other_word_vectors_are_named(tmp_path: Path) -> None:
    for seed in (1, 2):
        record(tmp_path, "mini", seed, files={_VECTORS: "a" * 64})
    record(tmp_path, "none", 1, files={_VECTORS: "b" * 64})
    record(tmp_path, "none", 2)  # of a version without these digests
    state = study_state(tmp_path)
    warning = (
        "glove.txt had other content in ner/none/seed-1 than in the other runs (SHA-256 bbbbbbbb "
        "in place of aaaaaaaa): compare their scores with care."
    )
    assert differing_content(state.records()) == [warning]
    for page in write_results(state):
        assert warning in page.read_text()


def test_long_lists_of_runs_are_shortened(tmp_path: Path) -> None:
    records = [record(tmp_path, "mini", seed, data={"a.txt": "a" * 64}) for seed in range(6)]
    records += [record(tmp_path, "none", seed, data={"a.txt": "b" * 64}) for seed in range(4, 9)]
    (warning,) = differing_content(records)
    assert warning.startswith(
        "a.txt had other content in ner/none/seed-4, ner/none/seed-5, ner/none/seed-6 and 2 more "
    )


def test_another_path_may_have_other_content(tmp_path: Path) -> None:
    digests = {"files": {_VECTORS: "b" * 64}, "bilm": {_MODULE: "b" * 64}}
    other = add_record(
        tmp_path, "none", 1, 0.5, experiment=experiment("other.txt", "small"), digests=digests
    )
    first = record(tmp_path, "mini", 1, files={_VECTORS: "a" * 64}, bilm={_MODULE: "a" * 64})
    assert differing_content([first, other]) == []


def test_a_bilm_is_known_by_the_config_of_its_component(tmp_path: Path) -> None:
    records = [record(tmp_path, "mini", seed, bilm={_MODULE: f"{seed}" * 64}) for seed in (1, 2)]
    (warning,) = differing_content(records)
    assert warning.startswith(f"the model of model.{_MODULE} had other content in ner/mini/seed-2")
