"""Shell completion of the command line, written by shtab."""

from __future__ import annotations

from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from typing import Any

from elmo_framework.io.remote import as_path

FOLDERS = ("run_folder", "--output-dir", "--serialization-dir")
BILMS = ("bilm", "run_bilms", "run_or_bilm", "before")
"""Arguments that are the folder or the name of a biLM."""


def completion_script(parser: ArgumentParser, shell: str) -> str:
    """Return a script that completes commands, flags, choices, files and names of biLMs.

    `shell` is bash, zsh or fish.
    """
    import shtab

    values = _bilms()
    for action in _actions(parser):
        if action.dest in BILMS:
            action.complete = values  # type: ignore[attr-defined]
        elif action.type is as_path:
            is_folder = not {action.dest, *action.option_strings}.isdisjoint(FOLDERS)
            action.complete = shtab.DIRECTORY if is_folder else shtab.FILE  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell)
    return script


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _bilms() -> dict[str, Any]:
    """Return functions of each shell that complete a folder or the name of a biLM."""
    from elmo_framework.bilm.files.published import PACKAGED, PUBLISHED

    names = " ".join([*PACKAGED, *PUBLISHED])
    bash = f'compgen -W "{names}" -- $1; compgen -d -- $1'
    zsh = f"_alternative 'names:biLM:({names})' 'folders:folder:_files -/'"
    fish = f"string split ' ' '{names}'; __fish_complete_directories"
    return {
        "bash": "_elmo_bilm",
        "zsh": "_elmo_bilm",
        "fish": "(_elmo_bilm)",
        "preamble": {
            "bash": f"_elmo_bilm() {{ {bash}; }}",
            "zsh": f"_elmo_bilm() {{ {zsh} }}",
            "fish": f"function _elmo_bilm; {fish}; end",
        },
    }
