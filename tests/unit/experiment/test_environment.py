"""What a run records about the code, the command and the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from elmo_framework.experiment import environment
from elmo_framework.experiment.environment import describe_checkout, describe_environment

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
    monkeypatch.setattr(environment, "_PACKAGE", package)
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


def test_a_library_that_is_missing_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_LIBRARIES", ("torch", "no-such-library"))
    assert describe_environment(CPU)["libraries"] == {
        "torch": torch.__version__,
        "no-such-library": None,
    }
