"""`elmo new --plugin` writes a package that trains as it is."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from elmo_framework import load
from elmo_framework.commands.main import main
from elmo_framework.config.plugins import load_plugins
from tests.conftest import ROOT
from tests.plugin_scope import without_plugins

NAME = "my_first_plugin"


def test_plugin_trains_and_predicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--plugin", NAME]) == 0
    assert main(["new", "--plugin", NAME]) == 2
    assert f"{NAME} already exists" in capsys.readouterr().err
    monkeypatch.chdir(NAME)
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert project["entry-points"]["elmo_framework.plugins"] == {NAME: NAME}
    monkeypatch.syspath_prepend("src")
    with without_plugins(NAME):
        flags = ["--include-package", NAME, "-o", "trainer.num_epochs=2"]
        assert main(["train", "config.jsonnet", "-s", "run", *flags]) == 0
        (prediction,) = load("run").predict(["Add salt to the soup."])
        assert sum(prediction["probabilities"].values()) == pytest.approx(1)
        capsys.readouterr()
        Path("bad.txt").write_text("no label\n")
        assert main(["evaluate", "run", "bad.txt"]) == 2
        assert "bad.txt:1: expected a label, a colon and a text" in capsys.readouterr().err
        load_plugins([NAME])
        assert main(["describe", "model", f"{NAME}_classifier"]) == 0
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    for command in (["check", "--ignore", "D,I001"], ["format", "--check"]):
        code = [sys.executable, "-m", "ruff", *command, *settings, "src", "tests"]
        checked = subprocess.run(code, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "there is a module 'json' already"),
        ("torch", "there is a module 'torch' already"),
        ("My.Plugin", "is not a name of a package; use lower-case"),
        ("class", "is not a name of a package"),
        ("basic", "'basic_classifier', which the plugin 'basic' would register, is the name"),
        ("multi-label", "'multi_label_classifier', which the plugin 'multi_label' would register"),
    ],
)
def test_unusable_name_is_refused(
    name: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--plugin", name]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
