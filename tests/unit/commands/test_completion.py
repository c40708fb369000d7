"""Completion scripts, read by the shells that are installed."""

from __future__ import annotations

import shutil
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest

from elmo_framework.commands.completion import BILMS, FOLDERS
from elmo_framework.commands.main import COMMANDS, main
from elmo_framework.config.arguments import add_arguments

SHELLS = ("bash", "zsh", "fish")
COMPLETE_WITH = {
    "bash": "COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_elmo\n"
    'printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": "complete --do-complete '{line}' | string split --fields 1 \\t; or true",
}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def run(shell: str, *arguments: str, folder: Path) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    ended = subprocess.run([shell, *arguments], cwd=folder, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_accepts_the_script(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script").write_text(script(shell, capsys))
    run(shell, "-n", "script", folder=tmp_path)


@pytest.mark.parametrize("shell", COMPLETE_WITH)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("elmo ev", {"evaluate"}),
        ("elmo embed m", {"mini", "medium"}),
        ("elmo embed mini news.txt --dty", {"--dtype"}),
        ("elmo embed mini news.txt --dtype f", {"float16", "float32"}),
        ("elmo embed mini ne", {"news.txt"}),
        ("elmo predict r", {"runs"}),
        ("elmo completion z", {"zsh"}),
    ],
)
def test_commands_flags_files_and_names_complete(
    shell: str,
    line: str,
    expected: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "news.txt").touch()
    (tmp_path / "rest.txt").touch()
    ask = COMPLETE_WITH[shell].format(line=line)
    shown = run(shell, "-c", f"{script(shell, capsys)}\n{ask}", folder=tmp_path)
    assert {name.rstrip("/") for name in shown.split()} == expected


def test_folders_and_bilms_are_arguments() -> None:
    names: set[str] = set()
    for command in COMMANDS:
        parser = ArgumentParser()
        add_arguments(parser, command)
        names |= {name for each in parser._actions for name in [each.dest, *each.option_strings]}
    assert {*FOLDERS, *BILMS} <= names
