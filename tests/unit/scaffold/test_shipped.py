"""Shipped configs as one file; the folders of them that are put into the wheel."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools

from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.scaffold import shipped
from tests.conftest import ROOT

CONFIGS = [
    (task, name, small)
    for task in shipped.FOLDERS
    for name in shipped.shipped_names(task)
    for small in (False, True)
    if not small or (shipped.task_folder(task) / "small.libsonnet").exists()
    if not (small and name.startswith("bidaf"))
]


def test_one_file_means_the_same_as_the_shipped_files(tmp_path: Path):
    assert len(CONFIGS) > 30
    for task, name, small in CONFIGS:
        text = shipped.shipped_config(task, name, small=small)
        flat, original = tmp_path / "flat.jsonnet", tmp_path / "original.jsonnet"
        flat.write_text(text)
        folder = shipped.task_folder(task)
        changes = f" + (import '{folder}/small.libsonnet')" if small else ""
        original.write_text(f"(import '{folder}/{name}.jsonnet'){changes}")
        assert Config.load(flat).raw == Config.load(original).raw, (task, name, small)


def test_wheel_has_the_configs_of_all_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commands: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", lambda *, cmdclass, **_: commands.update(cmdclass))
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    command = commands["build_py"](setuptools.Distribution({"packages": []}))
    command.ensure_finalized()
    command.build_lib = str(tmp_path)
    command.run()
    assert {str(path) for path in tmp_path.rglob("*sonnet")} <= set(command.get_outputs())
    monkeypatch.setattr(shipped, "_INSTALLED", tmp_path / "elmo_framework/scaffold/experiments")

    for task, name, small in CONFIGS:
        assert shipped.shipped_config(task, name, small=small)


def test_shipped_config_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)

    assert main(["new", "--task", "ner", "--from", "elmo"]) == 0
    assert Path("ner-elmo.jsonnet").read_text() == shipped.shipped_config(
        "ner", "elmo", small=False
    )

    for arguments, message in (
        ("--task ner --from elmoo", "unknown config 'elmoo' of ner; choose from baseline, elmo"),
        ("--task nr --from elmo", "Did you mean 'ner'?"),
        ("--from elmo", "--from needs --task; choose from tagging"),
        ("--task wsd --from elmo --small", "there are no settings for two cores of wsd"),
        ("--task ner --from taglm --label a", "--label is not for --from"),
        ("", "nothing to write: pass a data file"),
    ):
        assert main(["new", *arguments.split()]) == 2
        assert message in capsys.readouterr().err
