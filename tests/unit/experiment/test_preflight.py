import os
from pathlib import Path
from typing import Any

import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem

from elmo_framework import components
from elmo_framework.config import parse
from elmo_framework.experiment.check import preflight
from elmo_framework.experiment.experiment import Experiment

components.load()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("train.txt", "valid.txt"):
        (tmp_path / "data" / name).write_text("")
    return tmp_path


def raw(**changes: object) -> dict[str, Any]:
    """The configuration of a tagger, with some top keys changed."""
    return {
        "dataset_reader": "conll2003",
        "train_data_path": "data/train.txt",
        "model": tagger({"type": "embedding", "embedding_dim": 5}),
        **changes,
    }


def tagger(token_embedder: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "crf_tagger",
        "embedder": {"token_embedders": {"tokens": token_embedder}},
        "encoder": {"type": "lstm", "hidden_size": 3},
    }


def problems(**changes: object) -> list[str]:
    checked = parse.check(Experiment, raw(**changes), source="ner.jsonnet")
    assert checked.component is not None
    return list(map(str, preflight(checked.component)))


def test_a_configuration_whose_files_are_there_has_no_problem() -> None:
    assert problems(validation_data_path="data/valid.txt") == []


def test_a_missing_path_is_named_with_the_nearest_name(folder: Path) -> None:
    assert problems(train_data_path="data/tarin.txt") == [
        f"train_data_path: 'data/tarin.txt' does not exist (looked for in {folder}). "
        "Did you mean 'data/train.txt'?"
    ]


def test_the_first_folder_that_is_missing_is_named(folder: Path) -> None:
    assert problems(train_data_path="dat/deep/train.txt") == [
        f"train_data_path: 'dat/deep/train.txt' does not exist (looked for in {folder}); "
        "the folder 'dat' is missing. Did you mean 'data'?"
    ]


def test_missing_paths_deep_in_the_model_are_reported() -> None:
    model = tagger({"type": "elmo_token_embedder", "bilm": "runs/bilm"})
    model["output_embedder"] = {"type": "embedding", "embedding_dim": 2, "pretrained_file": "x.txt"}
    assert [each.partition(":")[0] for each in problems(model=model)] == [
        "model.embedder.token_embedders.tokens.bilm",
        "model.output_embedder.pretrained_file",
    ]


def test_the_name_of_a_bilm_is_taken_for_a_path() -> None:
    assert problems(model=tagger({"type": "elmo_token_embedder", "bilm": "original"})) == []


def test_an_unknown_bilm_is_reported_as_a_path_and_as_a_name(folder: Path) -> None:
    model = tagger({"type": "elmo_token_embedder", "bilm": "orginal"})
    assert problems(model=model) == [
        "model.embedder.token_embedders.tokens.bilm: 'orginal' does not exist (looked for in "
        f"{folder}). It is not a known name either; choose from medium, mini, original, "
        "original-5.5b, small. Did you mean 'original'?"
    ]


@pytest.mark.parametrize("place", ["https://example.org/a/train.txt", "s3://bucket/a/*.txt"])
def test_models_are_not_downloaded_by_url(place: str) -> None:
    (message,) = problems(model=tagger({"type": "elmo_token_embedder", "bilm": place}))
    assert message.endswith(
        f"{place!r} is an address, which is not downloaded: fetch it, and name the file. "
        "It is not a known name either; choose from medium, mini, original, original-5.5b, small."
    )


def test_missing_urls_are_reported(memory: MemoryFileSystem) -> None:
    vectors = {"type": "embedding", "embedding_dim": 5, "pretrained_file": "(memory://g.zip)#g.txt"}
    config = {
        "train_data_path": "memory://text/*.txt",
        "validation_data_path": "memory://text/valid.txt",
        "model": tagger(vectors),
    }
    assert problems(**config) == [
        "train_data_path: 'memory://text/*.txt' cannot be read: no file matches",
        "model.embedder.token_embedders.tokens.pretrained_file: 'memory://g.zip' cannot be read: "
        "it does not exist",
        "validation_data_path: 'memory://text/valid.txt' cannot be read: it does not exist",
    ]
    for name in ("/g.zip", "/text/train.txt", "/text/valid.txt"):
        memory.pipe(name, b"")
    assert problems(**config) == []


def test_missing_paths_in_options_are_reported() -> None:
    (found,) = problems(vocabulary={"directory": "runs/vocabulary"})
    assert found.startswith("vocabulary.directory: 'runs/vocabulary' does not exist")


@pytest.mark.parametrize("pattern", ["data/*.txt", "data/t?ain.txt", "d[a]ta/**/train.txt"])
def test_a_pattern_matches_a_file(pattern: str, folder: Path) -> None:
    assert problems(train_data_path=pattern) == []
    assert problems(train_data_path=str(folder / pattern)) == []


@pytest.mark.parametrize("pattern", ["data/*.csv", "data/**x"])
def test_a_pattern_without_a_match_is_a_problem(pattern: str, folder: Path) -> None:
    said = f"train_data_path: no file matches {pattern!r} (looked for in {folder})"
    assert problems(train_data_path=pattern) == [said]


def test_a_name_that_the_file_system_refuses_does_not_exist() -> None:
    (found,) = problems(train_data_path="x" * 300)
    assert "does not exist" in found


def test_a_reader_of_another_task_is_named_with_those_that_fit() -> None:
    (found,) = problems(dataset_reader="language_modeling")
    assert found.startswith(
        "dataset_reader.type: 'language_modeling' reads LanguageModelingExample, but the model "
        "'crf_tagger' takes TaggedSentence; readers that fit: "
    )
    assert "conll2003" in found.rpartition(":")[2]


def test_the_validation_reader_must_fit_too() -> None:
    (found,) = problems(validation_dataset_reader="language_modeling")
    assert found.startswith("validation_dataset_reader.type: 'language_modeling' reads ")


@pytest.mark.parametrize("key", ["min_count", "max_vocab_size"])
def test_limits_of_unknown_vocabularies_are_problems(key: str) -> None:
    assert problems(vocabulary={key: {"tokens": 3, "label": 2, "words": 2, "labels": 9}}) == [
        f"vocabulary.{key}.tokens: the model 'crf_tagger' counts no 'tokens'; "
        "choose from beginnings, characters, labels, words.",
        f"vocabulary.{key}.label: the model 'crf_tagger' counts no 'label'; "
        "choose from beginnings, characters, labels, words. Did you mean 'labels'?",
    ]


def test_a_device_that_is_absent_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert problems(trainer={"device": "cuda"}) == [
        "trainer.device: 'cuda' needs a GPU that torch can use, and there is none; "
        "use 'auto' or 'cpu'"
    ]
    assert problems(trainer={"device": "auto"}) == []


def test_an_available_device_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert problems(trainer={"device": "cuda"}) == []


def test_nothing_is_written_and_the_folder_stays(folder: Path) -> None:
    problems(train_data_path="data/none")
    assert os.listdir(folder) == ["data"]  # noqa: PTH208


def test_a_missing_archive_of_a_file_is_reported(folder: Path) -> None:
    path = "data/(glove.zip)#glove.txt"
    words = {"type": "embedding", "embedding_dim": 2, "pretrained_file": path}
    (found,) = problems(model=tagger(words))
    assert found.startswith(
        "model.embedder.token_embedders.tokens.pretrained_file: 'data/glove.zip' does not exist"
    )
    (folder / "data/glove.zip").touch()
    assert problems(model=tagger(words)) == []
