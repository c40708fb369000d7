"""Base class of the commands of `elmo`, and arguments that several of them share.

The module of a command imports its implementation in `run`, so that `elmo --help` is fast.
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
    """Base class of commands.

    Attributes:
        name: the first argument of `elmo`.
        help: one line for the list of commands and for the help of the command.
        epilog: examples, printed unchanged below the arguments.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    epilog: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the files that the command writes, to be checked by `io.outputs`."""
        return ()

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the files that the command reads, without plugins."""
        return ()

    @abstractmethod
    def run(self, arguments: Namespace) -> int:
        """Do the work and return the exit code.

        Raises:
            ElmoFrameworkError: the user can fix it; printed without a traceback, exit code 2.
        """


def add_config_arguments(parser: ArgumentParser) -> None:
    """Add CONFIG, its overrides and variables, and plugins, for `read_config`."""
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
        help="the value of std.extVar(NAME), by default that of the environment; may be given "
        "several times",
    )
    add_include_package(parser)


def add_include_package(parser: ArgumentParser) -> None:
    """Add `--include-package`."""
    parser.add_argument(
        "--include-package",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module that registers components; may be given several times",
    )


def add_bilm_argument(parser: ArgumentParser) -> None:
    """Add BILM."""
    parser.add_argument(
        "bilm",
        metavar="BILM",
        help="the folder of a biLM, or of its run, or its name: mini, or a published one",
    )


def add_run_bilm_argument(parser: ArgumentParser) -> None:
    """Add `--bilm`, for a run whose biLM was moved, as `arguments.bilms`."""
    parser.add_argument(
        "--bilm",
        action="append",
        default=[],
        dest="bilms",
        metavar="PATH",
        help="the new folder of a biLM that the run was trained with; may be given several times",
    )


def add_device_argument(parser: ArgumentParser) -> None:
    """Add `--device`."""
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where to compute; auto is a GPU if there is one (default: %(default)s)",
    )


def add_resume_arguments(parser: ArgumentParser, *, result: str) -> None:
    """Add `--force` and `--resume`; `result` is the metavar of the output."""
    parser.add_argument(
        "-f", "--force", action="store_true", help=f"overwrite {result} if it exists"
    )
    parser.add_argument("--resume", action="store_true", help="resume an interrupted job")


def add_force_argument(parser: ArgumentParser, *, result: str) -> None:
    """Add `--force`; `result` is the metavar of the output."""
    parser.add_argument("-f", "--force", action="store_true", help=f"overwrite {result}")


def output_files(arguments: Namespace, *flags: str) -> list[Output]:
    """Return the outputs given by `flags`, with the `--force` of `add_force_argument`."""
    paths = {flag: getattr(arguments, flag[2:].replace("-", "_")) for flag in flags}
    return [Output(path, flag, force=arguments.force) for flag, path in paths.items() if path]


def add_format_argument(parser: ArgumentParser) -> None:
    """Add `--format` for printed results."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the printed result"
    )


def add_predictions_format_argument(parser: _ActionsContainer) -> None:
    """Add `--predictions-format`."""
    parser.add_argument(
        "--predictions-format",
        default="jsonl",
        metavar="NAME",
        help="format of predictions (default: %(default)s); or that of the task's official "
        "scorer: conll, srl, conll2012 or squad",
    )


def read_config(arguments: Namespace) -> Config:
    """Load the config of `add_config_arguments`, and register its components and plugins.

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
    """Import the built-in components and the plugins: installed, in `packages` and in `config`."""
    from elmo_framework import components
    from elmo_framework.config.plugins import load_plugins

    components.load()
    load_plugins(packages, asked_by="--include-package")
    if config is not None:
        load_plugins(config.plugins, asked_by=f"{config.source}: plugins")


def above_zero(text: str) -> int:
    """Parse a positive integer argument."""
    if not (text.isdecimal() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def component(text: str) -> Any:
    """Parse an argument that is a registered name or a JSON object, as in a config."""
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not valid JSON: {error}") from error


def _external_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
