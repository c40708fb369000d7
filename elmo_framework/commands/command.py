"""What every command of `elmo` is, and the arguments that several of them share.

A module of a command is light: it declares arguments, and imports what does the work in `run`,
so that `elmo --help` answers at once.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from elmo_framework.config.allennlp import refuse_allennlp_keys
from elmo_framework.config.load import Config
from elmo_framework.errors import PluginError, Problem
from elmo_framework.io.outputs import Input, Output


class Command(ABC):
    """One command.

    Attributes:
        name: what is typed after `elmo`.
        help: one line for the list of commands, and the first of its own help.
        epilog: worked examples, printed below its arguments as they stand.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    epilog: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return what the command writes; none by default. See `common.outputs` for the rule."""
        return ()

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return what the command reads besides plugins; none by default."""
        return ()

    @abstractmethod
    def run(self, arguments: Namespace) -> int:
        """Do the work and return the exit code.

        Raises:
            ElmoFrameworkError: the user can repair it; printed without a traceback, exit code 2.
        """


def add_config_arguments(parser: ArgumentParser) -> None:
    """Declare CONFIG and what changes it; `read_config` reads them."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a .jsonnet or .json file")
    parser.add_argument(
        "-o",
        "--overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the config: dotted.key=VALUE, or a JSON object; may be given several times",
    )
    parser.add_argument(
        "--ext-var",
        action="append",
        default=[],
        type=_external_variable,
        metavar="NAME=VALUE",
        help="what std.extVar(NAME) gives, before the environment; may be given several times",
    )
    add_include_package(parser)


def add_include_package(parser: ArgumentParser) -> None:
    """Declare the flag that names plugins."""
    parser.add_argument(
        "--include-package",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module that registers components; may be given several times",
    )


def add_bilm_argument(parser: ArgumentParser) -> None:
    """Declare the biLM that a command reads."""
    parser.add_argument(
        "bilm",
        metavar="BILM",
        help="the folder of a biLM, or of its run, or its name: mini, or a published one",
    )


def add_run_bilm_argument(parser: ArgumentParser) -> None:
    """Declare where the biLM of a run is, if it is not found where it was; `arguments.bilms`."""
    parser.add_argument(
        "--bilm",
        action="append",
        default=[],
        dest="bilms",
        metavar="PATH",
        help="where a biLM is that the run was trained with, if it was moved; may be given several "
        "times",
    )


def add_device_argument(parser: ArgumentParser) -> None:
    """Declare what computes."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="what computes; %(default)s, which takes a GPU if there is one, unless given",
    )


def add_resume_arguments(parser: ArgumentParser, *, result: str) -> None:
    """Declare what is done with a result, and with an interrupted job's work, that is there.

    Args:
        parser: of the command.
        result: what its help calls the result.
    """
    parser.add_argument(
        "-f", "--force", action="store_true", help=f"overwrite {result} if it exists"
    )
    parser.add_argument("--resume", action="store_true", help="continue an interrupted job")


def add_force_argument(parser: ArgumentParser, *, result: str) -> None:
    """Declare the flag that lets a file be overwritten."""
    parser.add_argument("-f", "--force", action="store_true", help=f"overwrite {result}")


def output_files(arguments: Namespace, *flags: str) -> list[Output]:
    """Return the files that some flags name, beside `add_force_argument`."""
    named = {flag: getattr(arguments, flag[2:].replace("-", "_")) for flag in flags}
    return [Output(path, flag, force=arguments.force) for flag, path in named.items() if path]


def add_format_argument(parser: ArgumentParser) -> None:
    """Declare the form of what is printed."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="the form of what is printed"
    )


def add_predictions_format_argument(parser: _ActionsContainer) -> None:
    """Declare the format that predictions are written in."""
    parser.add_argument(
        "--predictions-format",
        default="jsonl",
        metavar="NAME",
        help="the format of predictions: %(default)s unless given, or that of the task's official "
        "scorer, as conll, srl, conll2012 or squad",
    )


def read_config(arguments: Namespace) -> Config:
    """Load the config that `add_config_arguments` asked for, and register all it may name.

    Raises:
        ElmoFrameworkError: it cannot be read, a plugin cannot be imported, or it was written for
            AllenNLP.
    """
    config = Config.load(
        arguments.config,
        overrides=arguments.overrides,
        external_variables=dict(arguments.ext_var),
    )
    try:
        register_components(arguments.include_package, config=config)
    except PluginError as error:
        missing = Problem("", str(error))
        refuse_allennlp_keys(config.raw, source=config.source, others=[missing])
        raise
    refuse_allennlp_keys(config.raw, source=config.source)
    return config


def register_components(packages: list[str], *, config: Config | None = None) -> None:
    """Import the built-in components and all plugins: installed, of the command line, of a config.

    Raises:
        ElmoFrameworkError: a plugin cannot be imported.
    """
    from elmo_framework import components
    from elmo_framework.config.plugins import load_plugins

    components.load()
    load_plugins(packages, asked_by="--include-package")
    if config is not None:
        load_plugins(config.plugins, asked_by=f"{config.source}: plugins")


def above_zero(text: str) -> int:
    """Read the value of a flag that takes a whole number above 0."""
    if not (text.isdecimal() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def component(text: str) -> Any:
    """Read the value of a flag that takes what a config takes for a component."""
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no JSON: {error}") from error


def _external_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
