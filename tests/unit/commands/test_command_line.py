"""The command line of all commands is that of `tests/fixtures/command_line.json`.

The fixture was written when each argument was a call of `add_argument`. It changes only together
with what users type.
"""

from __future__ import annotations

import json
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.commands.main import command_line, main
from elmo_framework.config.arguments import read_arguments
from tests.conftest import ROOT

FIXTURE = json.loads((ROOT / "tests/fixtures/command_line.json").read_text(encoding="utf-8"))
CORES = "the number of cores"


def parsers() -> Mapping[str, ArgumentParser]:
    """Return the parsers of all commands by name."""
    return dict(_subparsers(command_line()).choices or {})


def declared(parser: ArgumentParser) -> dict[str, Any]:
    """Return all that a parser knows, without the order and the layout of its help."""
    return {
        "description": parser.description,
        "epilog": parser.epilog,
        "arguments": {
            _name(action): _argument(parser, action)
            for action in parser._actions
            if action.nargs != "A..." and action.dest != "help"
        },
    }


def parsed(line: str) -> dict[str, Any]:
    """Return the values of all arguments of a command line."""
    namespace = command_line().parse_args(line.split())
    command = read_arguments(namespace.command, namespace)
    values = {
        _name(action): getattr(command, action.dest, getattr(namespace, action.dest, None))
        for action in parsers()[namespace.command.name]._actions
        if action.dest != "help"
    }
    if namespace.command.name == "prepare" and "--processes" not in line:
        values["--processes"] = CORES
    return {name: _plain(value) for name, value in values.items()}


def problem(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message about a wrong command line."""
    assert main(line.split()) == 2
    usage, _, message = capsys.readouterr().err.rpartition("error: ")
    assert usage.startswith("usage: elmo")
    return message.strip().replace("'", "")  # Python 3.12 and later quote no choices


def _argument(parser: ArgumentParser, action: Action) -> dict[str, Any]:
    exclusive = [
        sorted(map(_name, group._group_actions))
        for group in parser._mutually_exclusive_groups
        if action in group._group_actions and len(group._group_actions) > 1
    ]
    groups = [
        (group.title, group.description)
        for group in parser._action_groups
        if action in group._group_actions and group.title not in ("positional arguments", "options")
    ]
    properties = {
        "kind": type(action).__name__,
        "flags": action.option_strings,
        "metavar": action.metavar,
        "nargs": action.nargs,
        "choices": action.choices,
        "default": CORES if _name(action) == "--processes" else action.default or None,
        "required": action.required and bool(action.option_strings),
        "help": action.help and parser._get_formatter()._expand_help(action),
        "group": groups,
        "exclusive": exclusive,
    }
    return {name: _plain(value) for name, value in properties.items() if value}


def _name(action: Action) -> str:
    flags = action.option_strings
    long = [flag for flag in flags if flag.startswith("--")]
    return [*long, *flags, action.metavar or action.dest][0]  # type: ignore[return-value]


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return f"Path({value})"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "not in the namespace" if value is SUPPRESS else value


def _subparsers(parser: ArgumentParser) -> Action:
    return next(action for action in parser._actions if action.nargs == "A...")


def test_elmo_itself_has_the_same_arguments() -> None:
    assert declared(command_line()) == FIXTURE["elmo"]


def test_no_command_is_missing() -> None:
    assert parsers().keys() >= FIXTURE["commands"].keys()


@pytest.mark.parametrize("command", FIXTURE["commands"])
def test_arguments_have_same_flags_defaults_and_help(command: str) -> None:
    assert declared(parsers()[command]) == FIXTURE["commands"][command]


@pytest.mark.parametrize("line", FIXTURE["parsed"])
def test_command_line_has_the_same_values(line: str) -> None:
    assert parsed(line) == FIXTURE["parsed"][line]


@pytest.mark.parametrize("line", FIXTURE["errors"])
def test_wrong_command_line_has_the_same_message(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem(line, capsys) == FIXTURE["errors"][line]
