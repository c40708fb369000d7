"""Completion scripts in bash; tests/extras/extra_shells.py has those of zsh and fish."""

from __future__ import annotations

import io
import subprocess
from argparse import ArgumentParser
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from elmo_framework.commands.completion import BILMS, FOLDERS, NAMES
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
    ("elmo predict r", {"runs", "runs/ner"}),
    ("elmo predict runs/", {"runs/ner", "runs/study", "runs/study/mini"}),
    ("elmo predict m", {"model.tar.gz"}),
    ("elmo compare runs/n", {"runs/ner"}),
    ("elmo export m", {"mini", "medium", "model.tar.gz"}),
    ("elmo report runs/ner --before m", {"mini", "medium"}),
    ("elmo describe tok", {"token_embedder", "token_encoder", "tokenizer"}),
    ("elmo describe encoder l", {"lstm"}),
    ("elmo describe tokenizer s", {"spacy"}),
    ("elmo predict runs/ner new.txt --tokenizer s", {"spacy"}),
    ("elmo predict runs/ner new.txt --predictions-format co", {"conll", "conll2012", "conllu"}),
    ("elmo predict runs/ner new.txt --format b", {"brat"}),
    ("elmo completion z", {"zsh"}),
]


@cache
def script(shell: str) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        assert main(["completion", shell]) == 0
    return output.getvalue()


def run(shell: str, *arguments: str, folder: Path) -> str:
    ended = subprocess.run([shell, *arguments], cwd=folder, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def completed(shell: str, line: str, *, folder: Path) -> set[str]:
    """Return what a shell offers at the end of a line, in a folder with runs and files."""
    for run_folder in ("ner", "study/mini"):
        (folder / "runs" / run_folder).mkdir(parents=True)
        (folder / "runs" / run_folder / "filled_config.json").touch()
    for name in ("news.txt", "rest.txt", "model.tar.gz"):
        (folder / name).touch()
    ask = COMPLETE_WITH[shell].format(line=line)
    shown = run(shell, "-c", f"{script(shell)}\n{ask}", folder=folder)
    return {name.rstrip("/") for name in shown.split()}


def test_bash_accepts_the_script(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("bash"))
    run("bash", "-n", "script", folder=tmp_path)


@pytest.mark.parametrize(("line", "expected"), COMPLETIONS)
def test_commands_flags_files_and_names_complete(
    line: str, expected: set[str], tmp_path: Path
) -> None:
    assert completed("bash", line, folder=tmp_path) == expected


def test_folders_and_bilms_are_arguments() -> None:
    names: set[str] = set()
    for command in COMMANDS:
        parser = ArgumentParser()
        add_arguments(parser, command)
        names |= {name for each in parser._actions for name in [each.dest, *each.option_strings]}
    assert {*FOLDERS, *BILMS, *NAMES} <= names
