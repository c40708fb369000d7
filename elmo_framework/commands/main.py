"""The `elmo` command line: parse, run a command, turn errors into messages and exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from textwrap import wrap
from typing import Annotated, Any, Literal, NoReturn, final

from elmo_framework.commands.allennlp_flags import translated_flags
from elmo_framework.commands.archive import Archive
from elmo_framework.commands.cache import Cache
from elmo_framework.commands.check import Check
from elmo_framework.commands.check_weights import CheckWeights
from elmo_framework.commands.command import Command
from elmo_framework.commands.compare import Compare
from elmo_framework.commands.convert import Convert
from elmo_framework.commands.describe import Describe
from elmo_framework.commands.diff import ShowDifferences
from elmo_framework.commands.embed import Embed
from elmo_framework.commands.evaluate import Evaluate
from elmo_framework.commands.explain import Explain
from elmo_framework.commands.export import Export
from elmo_framework.commands.find_lr import FindLearningRate
from elmo_framework.commands.import_model import Import
from elmo_framework.commands.inputs import plugin_inputs
from elmo_framework.commands.neighbors import ShowNeighbors
from elmo_framework.commands.new import New
from elmo_framework.commands.predict import Predict
from elmo_framework.commands.prepare import Prepare
from elmo_framework.commands.print_results import PrintResults
from elmo_framework.commands.push import Push
from elmo_framework.commands.report import ShowReport
from elmo_framework.commands.schema import Schema
from elmo_framework.commands.score import Score
from elmo_framework.commands.serve import Serve
from elmo_framework.commands.study import RunStudy
from elmo_framework.commands.train import Train
from elmo_framework.config.arguments import Argument, add_arguments, read_arguments
from elmo_framework.errors import (
    ElmoFrameworkError,
    RunError,
    StoppedError,
    allowed,
    hint,
    memory_problem,
    with_hint,
)
from elmo_framework.io.download import offline
from elmo_framework.io.outputs import check_outputs, check_standard_output
from elmo_framework.io.process import (
    prepare_command,
    terminable_command,
    unwritable,
    variable,
)
from elmo_framework.version import VERSION


# Here, because the script needs the parser of all commands.
@final
@dataclass(frozen=True, kw_only=True)
class Completion(Command):
    """Print a script that completes commands, flags and files in a shell.

    Attributes:
        shell: the shell that reads the script.
    """

    name = "completion"
    epilog = """examples:
  elmo completion bash > ~/.local/share/bash-completion/completions/elmo
  elmo completion zsh > "${fpath[1]}/_elmo"
  elmo completion fish > ~/.config/fish/completions/elmo.fish

then start a new shell.
"""

    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(is_positional=True)]

    def run(self) -> int:
        from elmo_framework.commands.completion import completion_script

        print(completion_script(command_line(), self.shell))
        return 0


_GROUPS: Mapping[str, tuple[type[Command], ...]] = {
    "data and configs": (New, Prepare, Check, Convert, Describe, Schema),
    "train": (Train, FindLearningRate),
    "use": (Predict, Explain, Serve, Embed, Score, ShowNeighbors),
    "evaluate and study": (
        Evaluate,
        RunStudy,
        Compare,
        ShowReport,
        PrintResults,
        ShowDifferences,
        CheckWeights,
    ),
    "share": (Archive, Push, Export, Import, Cache, Completion),
}
COMMANDS: tuple[type[Command], ...] = tuple(chain.from_iterable(_GROUPS.values()))

_REPLACEMENTS = {
    "build-vocab": "elmo train counts words and labels; elmo check CONFIG --data shows how many",
    "checklist": "elmo evaluate and elmo compare on files that test one phenomenon each",
    "configure": "elmo new writes a config; elmo describe lists the components and their keys",
    "dry-run": "elmo train CONFIG -s DIR --dry-run",
    "elmo": "elmo embed BILM FILE --output-file vectors.hdf5",
    "fine-tune": "elmo train a config whose init_from names the run; elmo convert writes one",
    "make-vocab": "elmo train counts words and labels; elmo check CONFIG --data shows how many",
    "cached-path": "URLs are read wherever a file is named; elmo cache list shows what is kept",
    "count-instances": "elmo check CONFIG --data counts words and labels",
    "push-to-hf": "elmo push RUN hf://OWNER/NAME",
    "test-install": "elmo check-weights mini computes a sentence",
    "tune": "elmo study STUDY -s DIR searches settings, by itself or with Optuna",
}
"""By the commands of AllenNLP that are not here: what to use instead."""

_COMMAND, _HELP_WIDTH = "COMMAND", 79
_USERS_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 141
_SYNONYMS = {"gpu": "cuda"}  # which is nearer to cpu by its letters
_INVALID_CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)$")
_CLOSED_OUTPUT = "standard output is closed; redirect it to /dev/null if you do not need it"
_EPILOG = """exit codes: 0 success, 1 an internal error or failed runs of a study, 2 an error that
you can fix, 130 interrupted. `elmo COMMAND --help` shows the arguments of a command, with examples.
"""


_WELCOME = """\
elmo trains biLMs and task models, and uses them. Five ways to begin:

  a model of your own data      elmo new reviews.csv
  use a model that you have     elmo predict runs/reviews new.csv
  vectors of text, no training  elmo embed mini sentences.txt --output-file vectors.hdf5
  a biLM of your own text       elmo new texts/
  a config of a task            elmo new --task ner --from elmo

`elmo --help` lists all commands, `elmo COMMAND --help` shows examples of one.
"""


@final
class _HelpFormatter(RawDescriptionHelpFormatter):
    """Leaves out the list of commands: `_command_list` has it in groups, as argparse cannot."""

    def add_argument(self, action: Action) -> None:
        if action.metavar != _COMMAND:
            super().add_argument(action)


@final
class _Parser(ArgumentParser):
    """Adds the nearest choice to argparse's message about an invalid one."""

    def error(self, message: str) -> NoReturn:
        if invalid := _INVALID_CHOICE.search(message):
            choice, choices = invalid[1], re.findall(r"[\w-]+", invalid[2])
            message = with_hint(message, hint(_SYNONYMS.get(choice, choice), choices))
        super().error(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; internal errors are raised.

    Args:
        argv: the arguments; those of the process by default.
    """
    prepare_command()
    if sys.stdout is None:  # closed
        return _fail(f"error: {_CLOSED_OUTPUT}", _USERS_ERROR)
    argv = sys.argv[1:] if argv is None else argv
    if not argv:
        print(_WELCOME, end="")
        return 0
    try:
        arguments = _parse(argv)
    except SystemExit as end:  # argparse has printed the message
        return int(end.code or 0)
    return _run(arguments)


def _parse(argv: Sequence[str]) -> Namespace:
    name = next((argument for argument in argv if not argument.startswith("-")), None)
    parser = command_line(only=name or "")
    names = [command.name for command in COMMANDS]
    if name in _REPLACEMENTS and name not in names:
        parser.exit(_USERS_ERROR, f"elmo has no {name}: {_REPLACEMENTS[name]}\n")
    if name is not None and name not in names:
        parser.error(f"unknown command {name!r}; {allowed(name, names)}")
    try:
        argv, notes = translated_flags(name or "", argv)
        sys.stderr.writelines(f"{note}\n" for note in notes)
        arguments, unknown = parser.parse_known_args(argv)
    except ElmoFrameworkError as error:
        parser.exit(_USERS_ERROR, f"error: {error}\n")
    inner: ArgumentParser = vars(arguments).pop("parser")
    if unknown:
        flags = [flag for action in inner._actions for flag in action.option_strings]
        nearest = hint(unknown[0].partition("=")[0], flags)
        inner.error(with_hint(f"unrecognized arguments: {' '.join(unknown)}", nearest))
    return arguments


def command_line(*, only: str | None = None) -> ArgumentParser:
    """Return the parser of `elmo`, which stores the class of the command as `command`.

    Args:
        only: the command whose arguments are needed; those of all commands take some time.
    """
    description = "Pretrain biLMs, and train and use task models on them."
    form: dict[str, Any] = {"formatter_class": _HelpFormatter, "allow_abbrev": False}
    epilog = "\n".join([*_command_list(), "", _EPILOG])
    usage = "elmo [-h] [--version] [--offline] [--traceback] COMMAND ..."
    parser = _Parser(prog="elmo", usage=usage, description=description, epilog=epilog, **form)
    parser.add_argument("--version", action="version", version=f"elmo_framework {VERSION}")
    _add_common(parser, default=False)
    subparsers = parser.add_subparsers(metavar=_COMMAND, prog="elmo", required=True)
    for command in COMMANDS:
        inner = subparsers.add_parser(
            command.name,
            help=command.help(),
            description=command.help(),
            epilog=command.epilog,
            **form,
        )
        if only in (None, command.name):
            add_arguments(inner, command)
        _add_common(inner, default=SUPPRESS)
        inner.set_defaults(command=command, parser=inner)
    return parser


def _command_list() -> Iterator[str]:
    """Yield the lines of the help that list the commands."""
    widest = max(len(command.name) for command in COMMANDS)
    for title, commands in _GROUPS.items():
        yield f"\n{title}:"
        for command in commands:
            begin = f"  {command.name:{widest}}  "
            indent = " " * len(begin)
            yield from wrap(
                command.help(),
                _HELP_WIDTH,
                initial_indent=begin,
                subsequent_indent=indent,
            )


def _add_common(parser: ArgumentParser, *, default: bool | str) -> None:
    parser.add_argument(
        "--offline",
        action="store_true",
        default=default,
        help="do not download anything; use the files in the cache",
    )
    parser.add_argument(
        "--traceback",
        action="store_true",
        default=default,
        help="show the traceback of an error",
    )


def _run(arguments: Namespace) -> int:
    command: Command = read_arguments(arguments.command, arguments)
    try:
        # Child processes must not import modules from the current folder either.
        with (
            variable("PYTHONSAFEPATH", "1"),
            offline() if arguments.offline else nullcontext(),
            terminable_command(),
            _memory_problems(),
        ):
            _check_files(command)
            code = command.run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        _close_standard_output()
        return _BROKEN_PIPE
    except StoppedError as stop:
        return _fail(str(stop), _INTERRUPTED)
    except (ElmoFrameworkError, OSError, UnicodeEncodeError) as error:
        if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
            raise
        if arguments.traceback:
            traceback.print_exc()
            return _USERS_ERROR
        return _fail(f"error: {_message(error)}", _USERS_ERROR)
    return code


@contextmanager
def _memory_problems() -> Iterator[None]:
    """Turn PyTorch's error of a GPU without memory into one that the user can fix."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # of torch, which is not imported here
            raise
        advice = "lower --batch-size, pass --device cpu, or free the GPU"
        raise RunError(f"{memory_problem(error)}; {advice}") from error


def _check_files(command: Command) -> None:
    inputs = command.inputs()
    check_standard_output(inputs)
    if outputs := command.outputs():
        plugins = plugin_inputs(getattr(command, "packages", ()), "--include-package")
        check_outputs(outputs, [*inputs, *plugins])


def _message(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return unwritable(error)
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror}"
    return str(error)


def _fail(message: str, code: int) -> int:
    """Print a message to standard error, and return the exit code."""
    sys.stderr.write(f"{message}\n")
    return code


def _close_standard_output() -> None:
    """Prevent Python's message at exit about the broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
