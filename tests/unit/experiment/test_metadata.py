"""What a run records about the code, the command and the machine."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.experiment import metadata
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.metadata import (
    changes,
    describe_checkout,
    describe_environment,
    differences,
    word_coverage,
)

CPU = torch.device("cpu")
NO_COMMIT = {"git_commit": None, "git_changed": None}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a repository with one commit."""
    folder = tmp_path / "project/package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    git(folder.parent, "init", "--quiet")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "--quiet", "--message", "first")
    return folder


def test_the_commit_of_a_checkout_is_recorded(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.chdir(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    expected = {"git_commit": git(package, "--git-dir=../.git", "rev-parse", "HEAD")}
    assert describe_checkout(package) == {**expected, "git_changed": False}
    (package.parent / "notes.txt").write_text("beside the package")
    assert describe_checkout(package) == {**expected, "git_changed": False}
    (package / "new.py").write_text("")
    assert describe_checkout(package) == {**expected, "git_changed": True}
    (package / "new.py").unlink()
    (package / "__init__.py").write_text("changed = True\n")
    assert describe_checkout(package) == {**expected, "git_changed": True}


def test_an_installed_package_has_no_commit(package: Path) -> None:
    installed = package.parent / ".venv/package"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert describe_checkout(installed) == NO_COMMIT


def test_commit_is_none_without_a_repository_or_git(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert describe_checkout(tmp_path) == NO_COMMIT
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_checkout(package) == NO_COMMIT


def test_the_commit_of_a_run_is_that_of_this_package(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_PACKAGE", package)
    monkeypatch.chdir("/")
    described = describe_environment(CPU)
    assert described["git_commit"] == git(package, "rev-parse", "HEAD")
    assert described["git_changed"] is False


def test_external_variables_are_recorded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["elmo", "train", "a.jsonnet", "--ext-var", "TOKEN=hush=1", "--ext-var=KEY=hush"]
    monkeypatch.setattr(sys, "argv", [*words, "-o", "plugins=[]", "--ext-var", "LAST=hush"])
    monkeypatch.setenv("ANOTHER", "hush")
    described = describe_environment(CPU)
    expected = ["--ext-var", "TOKEN=...", "--ext-var=KEY=...", "-o", "plugins=[]"]
    assert described["command"] == [*words[:3], *expected, "--ext-var", "LAST=..."]
    assert "hush" not in json.dumps(described)


components.load()


def measured(folder: Path, tokens: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Build a tagger on two small data sets, and measure its words."""
    (folder / "train.txt").write_text("the###A dog###B the###A\nran###C\n")
    (folder / "valid.txt").write_text("the###A cat###B owl###C\n")
    (folder / "test.txt").write_text("dog###A\n")
    (folder / "vectors.txt").write_text("the 1 2\ndog 3 4\ncat 5 6\n")
    config = {
        "dataset_reader": "sequence_tagging",
        **{f"{name}_data_path": str(folder / f"{name}.txt") for name in ("train", "test")},
        "validation_data_path": str(folder / "valid.txt"),
        "model": {
            "type": "simple_tagger",
            "embedder": {
                "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2, **tokens}}
            },
        },
        **keys,
    }
    experiment = parse(Experiment, config, source="a.jsonnet").build()
    return word_coverage(Assembly.build(experiment, device=CPU))


def test_vector_coverage_is_measured_per_data_set(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="elmo_framework.experiment.metadata"):
        found = measured(
            tmp_path,
            {"pretrained_file": str(tmp_path / "vectors.txt")},
            datasets_for_vocab_creation=["train"],
        )

    assert found == {
        "embedder.token_embedders.tokens": {
            "train": {"running_words": 3 / 4, "distinct_words": 2 / 3},
            "validation": {"running_words": 2 / 3, "distinct_words": 2 / 3},
        }
    }
    assert caplog.messages == [
        "embedder.token_embedders.tokens has vectors for "
        "75.0 % of the words of train (66.7 % of the distinct ones), "
        "66.7 % of the words of validation (66.7 % of the distinct ones)"
    ]


def test_the_test_data_is_looked_at_only_where_it_is_scored(tmp_path):
    found = measured(
        tmp_path, {"pretrained_file": str(tmp_path / "vectors.txt")}, evaluate_on_test=True
    )

    assert found["embedder.token_embedders.tokens"]["test"]["running_words"] == 1.0


def test_without_a_file_there_is_nothing_to_count(tmp_path):
    assert measured(tmp_path, {}) == {}


@pytest.mark.parametrize("value", [None, False])
def test_new_key_that_is_off_is_no_difference(value):
    before, now = {"model": {"type": "bidaf"}}, {"model": {"type": "bidaf", "new": value}}

    assert differences(before, now) == []


def test_new_key_that_is_on_is_a_difference():
    before, now = {"model": {"type": "bidaf"}}, {"model": {"type": "bidaf", "new": True}}

    assert differences(before, now) == ["model.new: None -> True"]
    assert differences({"new": True}, {"new": False}) == ["new: True -> False"]


@pytest.mark.parametrize("given", [{}, {"trainer": {}}, {"trainer": {"optimizer": "adam"}}])
def test_new_key_that_is_not_set_is_no_difference(given):
    before = {"trainer": {"optimizer": {"type": "adam"}}}
    now = {"trainer": {"optimizer": {"type": "adam", "new": 1}, "new": "float32"}}

    assert list(changes(before, now, given=given)) == []
    assert len(list(changes(before, now))) == 2
    assert list(changes(now, before, given=given)) != []


def test_new_key_that_is_set_is_a_difference():
    before, now = {"trainer": {}}, {"trainer": {"new": "bfloat16"}}

    assert list(changes(before, now, given=now)) == [("trainer.new", None, "bfloat16")]
