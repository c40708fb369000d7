"""Completion scripts in bash; tests/extras/extra_shells.py has those of zsh and fish."""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest

from elmo_framework.commands.completion import BILMS, FOLDERS
from elmo_framework.commands.main import COMMANDS, main
from elmo_framework.config.arguments import add_arguments

COMPLETE_WITH = {
    "bash": "COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_elmo\n"
    'printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": "complete --do-complete '{line}' | string split --fields 1 \\t; or true",
}
COMPLETIONS = [
    ("elmo ev", {"evaluate"}),
    ("elmo embed m", {"mini", "medium"}),
    ("elmo embed mini news.txt --dty", {"--dtype"}),
    ("elmo embed mini news.txt --dtype f", {"float16", "float32"}),
    ("elmo embed mini ne", {"news.txt"}),
    ("elmo predict r", {"runs"}),
    ("elmo completion z", {"zsh"}),
]


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def run(shell: str, *arguments: str, folder: Path) -> str:
    ended = subprocess.run([shell, *arguments], cwd=folder, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def completed(
    shell: str, line: str, *, folder: Path, capsys: pytest.CaptureFixture[str]
) -> set[str]:
    """Return what a shell offers at the end of a line, in a folder with two files and a folder."""
    (folder / "runs").mkdir()
    (folder / "news.txt").touch()
    (folder / "rest.txt").touch()
    ask = COMPLETE_WITH[shell].format(line=line)
    shown = run(shell, "-c", f"{script(shell, capsys)}\n{ask}", folder=folder)
    return {name.rstrip("/") for name in shown.split()}


def test_bash_accepts_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script").write_text(script("bash", capsys))
    run("bash", "-n", "script", folder=tmp_path)


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS)
def test_commands_flags_files_and_names_complete(
    line: str, expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("bash", line, folder=tmp_path, capsys=capsys) == expected


def test_folders_and_bilms_are_arguments() -> None:
    names: set[str] = set()
    for command in COMMANDS:
        parser = ArgumentParser()
        add_arguments(parser, command)
        names |= {name for each in parser._actions for name in [each.dest, *each.option_strings]}
    assert {*FOLDERS, *BILMS} <= names
