"""Shell completion of the command line, written by shtab."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from elmo_framework.io.remote import as_path

FOLDERS = ("--output-dir", "--serialization-dir")
BILMS = ("bilm", "run_bilms", "run_or_bilm", "before")
"""Arguments that are the folder or the name of a biLM."""

NAMES = ("family", "member", "tokenizer", "sentence_splitter", "reader", "predictions_format")
"""Arguments that are registered names."""

_RUN = "RUN"
"""The metavar of arguments that are the folder or the archive of a run."""

_MARKER = "filled_config.json"
_PLAIN = re.compile(r"[\w.+-]+")

_Values: TypeAlias = dict[str, Any]
"""Functions of each shell that print values, as shtab reads them."""


def completion_script(parser: ArgumentParser, shell: str) -> str:
    """Return a script that completes commands, flags, choices, files, runs and names.

    The registered names are those of now, with those of installed plugins. `shell` is bash, zsh or
    fish.
    """
    import shtab

    values = {dest: _bilms() for dest in BILMS} | _registered_names()
    runs, runs_or_bilms = _runs(), _runs_or_bilms()
    for action in _actions(parser):
        complete: Any = values.get(action.dest)
        if action.metavar == _RUN:
            complete = runs_or_bilms if action.dest in BILMS else runs
        elif complete is None and action.type is as_path:
            is_folder = not {*FOLDERS}.isdisjoint(action.option_strings)
            complete = shtab.DIRECTORY if is_folder else shtab.FILE
        if complete is not None:
            action.complete = complete  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell)
    return script


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _function(name: str, *, bash: str, zsh: str, fish: str) -> _Values:
    name = f"_elmo_{name}"
    return {
        "bash": name,
        "zsh": name,
        "fish": f"({name})",
        "preamble": {
            "bash": f"{name}() {{ {bash}; }}",
            "zsh": f"{name}() {{ {zsh} }}",
            "fish": f"function {name}; {fish}; end",
        },
    }


def _runs_or_bilms() -> _Values:
    """Return functions that print what those of runs and of biLMs print."""
    parts = _runs(), _bilms()
    both = _function(
        "run_or_bilm",
        bash='_elmo_run "$1"; _elmo_bilm "$1"',
        zsh="_elmo_run; _elmo_bilm",
        fish="_elmo_run; _elmo_bilm",
    )
    preambles = [each["preamble"] for each in (*parts, both)]
    return both | {
        "preamble": {shell: "\n".join(each[shell] for each in preambles) for shell in preambles[0]}
    }


def _bilms() -> _Values:
    from elmo_framework.bilm.files.published import PACKAGED, PUBLISHED

    names = " ".join([*PACKAGED, *PUBLISHED])
    return _function(
        "bilm",
        bash=f'compgen -W "{names}" -- "$1"; compgen -d -- "$1"',
        zsh=f"_alternative 'names:biLM:({names})' 'folders:folder:_files -/'",
        fish=f"string split ' ' '{names}'; __fish_complete_directories",
    )


def _runs() -> _Values:
    """Return functions for folders, archives, and the runs in a folder or two levels below it."""
    inner = (f"/{_MARKER}", f"/*/{_MARKER}")
    bash = " ".join(f'"$1"*{each}' for each in inner)
    zsh = " ".join(f"${{PREFIX}}*{each}(N:h)" for each in inner)
    fish = " ".join(f"$word*{each}" for each in inner)
    return _function(
        "run",
        bash='compgen -d -- "$1"; compgen -f -X "!*.tar.gz" -- "$1"; '
        f'for file in {bash}; do [ -f "$file" ] && echo "${{file%/*}}"; done',
        zsh=f"local -a runs=({zsh}); compadd -f -- $runs; _files -/; _files -g '*.tar.gz'",
        fish="set -l word (commandline -ct); __fish_complete_directories; "
        f"for file in $word*.tar.gz; echo $file; end; for file in {fish}; dirname $file; end",
    )


def _names(name: str, names: Iterable[str]) -> _Values:
    return _after(name, {}, names)


def _after(name: str, by_word: Mapping[str, Iterable[str]], default: Iterable[str] = ()) -> _Values:
    """Return functions for names that depend on the word before."""
    listed = {word: _plain(names) for word, names in by_word.items()}
    rest = _plain(default)
    bash = "".join(f'{word}) compgen -W "{names}" -- "$1";; ' for word, names in listed.items())
    zsh = "".join(f"{word}) compadd -- {names};; " for word, names in listed.items())
    fish = "".join(f"case {word}; string split ' ' '{names}'; " for word, names in listed.items())
    return _function(
        name,
        bash=f'case "${{COMP_WORDS[COMP_CWORD-1]}}" in {bash}*) compgen -W "{rest}" -- "$1";; esac',
        zsh=f'case "$words[CURRENT-1]" in {zsh}*) compadd -- {rest};; esac',
        fish=f"switch (commandline -opc)[-1]; {fish}case '*'; string split ' ' '{rest}'; end",
    )


def _plain(names: Iterable[str]) -> str:
    """Join names; those that a shell could read as something else are left out."""
    return " ".join(sorted(name for name in names if _PLAIN.fullmatch(name)))


def _registered_names() -> dict[str, _Values]:
    """Return the functions for `NAMES`."""
    import elmo_framework.experiment.experiment
    import elmo_framework.study.study  # noqa: F401
    from elmo_framework.commands.command import register_components
    from elmo_framework.config.registry import families, member_classes, members
    from elmo_framework.experiment.prediction_formats import formats_of
    from elmo_framework.model.head import Head

    register_components(())
    names = {name: members(family) for name, family in families().items()}
    formats = {name for head in member_classes(Head).values() for name in formats_of(head.task)}
    tokenizers = _names("tokenizer", names["tokenizer"])
    return {
        "family": _names("family", names),
        "member": _after("member", names),
        "tokenizer": tokenizers,
        "sentence_splitter": tokenizers,
        "reader": _names("reader", names["dataset_reader"]),
        "predictions_format": _names("format", formats),
    }
