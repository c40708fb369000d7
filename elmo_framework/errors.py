"""Errors that a user can cause and fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOP_LEVEL = "(top level)"
_SHOWN, _QUOTED = 100, 200
_LONG_QUOTATION = re.compile(
    rf"""(?:(?<!\w)|(?<=\bb))(?:'(?:[^'\\]|\\.){{{_QUOTED},}}+'|"(?:[^"\\]|\\.){{{_QUOTED},}}+")""",
    re.DOTALL,
)
"""A string as `repr` writes it."""


class ElmoFrameworkError(Exception):
    """Base of every error whose cause is outside the code: a config, a file, the data."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a configuration, and where."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or TOP_LEVEL}: {self.message}"


class ConfigError(ElmoFrameworkError):
    """A configuration that describes no runnable job; holds every problem, not the first."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        noun = "problem" if len(problems) == 1 else "problems"
        lines = [f"{source}: {len(problems)} {noun} in the configuration"]
        lines += [f"  {problem}" for problem in problems]
        super().__init__("\n".join(lines))


class UnreadableConfigError(ConfigError):
    """A configuration that cannot be read, or that jsonnet cannot evaluate."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(source, [Problem("", message)])
        self.args = (f"{source}: {message}",)


class BuildError(ElmoFrameworkError):
    """A valid configuration whose component rejected its arguments when it was built."""

    def __init__(self, message: str, *, source: str | None = None, path: str = "") -> None:
        self.problem = Problem(path, message)
        where = [] if source is None else [source, path or TOP_LEVEL]
        super().__init__(": ".join([*where, message]))


class DataError(ElmoFrameworkError):
    """A file, or a line of it, that cannot be used as it is.

    The message quotes at most 200 characters of a text.

    Attributes:
        path: the file; None if there is none.
        line: its line, from 1; None for the whole file.
        config_path: the dotted path of the component that read it while it was built, if any.
    """

    def __init__(self, message: str, *, path: Path | None = None, line: int | None = None) -> None:
        self.path, self.line, self.config_path = path, line, ""
        name = "standard input" if path == Path("-") else path
        where = [str(part) for part in (name, line) if part is not None]
        message = _LONG_QUOTATION.sub(lambda match: f"{match[0][:_QUOTED]}...", message)
        super().__init__(": ".join([":".join(where), message]) if where else message)

    def with_end(self, sentence: str) -> DataError:
        """Return this error with one more sentence at the end of its message."""
        error = DataError(f"{str(self).rstrip('.')}. {sentence}")
        error.path, error.line, error.config_path = self.path, self.line, self.config_path
        return error


class RunError(ElmoFrameworkError):
    """A run that cannot start, resume or be loaded: its folder, its device, its parts."""


class MissingExtraError(RunError):
    """A package of an extra is not installed; the message has the command that installs it."""


class PluginError(RunError):
    """A plugin that cannot be imported; its message holds the plugin's own traceback."""


class StoppedError(ElmoFrameworkError):
    """The user stopped a job, and it saved what it had."""


@contextmanager
def error_path(path: Path) -> Iterator[None]:
    """Add a path to errors that have none."""
    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(str(error), path=path) from error


def allowed(name: str, names: Iterable[str]) -> str:
    """Write the end of a message about an unknown `name`: the choices and the nearest match."""
    return f"choose from {_listed(name, names)}"


def found(name: str, names: Iterable[str]) -> str:
    """Write the end of a message about a missing `name`: the names present and the nearest."""
    return f"found: {_listed(name, names)}"


def _listed(name: str, names: Iterable[str]) -> str:
    choices = sorted(names)
    return f"{', '.join(map(truncated, choices)) or '(none)'}.{hint(name, choices)}"


def hint(name: str, names: Sequence[str]) -> str:
    """Ask whether the nearest of `names` was meant, after a sentence; empty if none is near."""
    near = nearest(name, names)
    return "" if near is None else f" Did you mean {near!r}?"


def with_hint(message: str, question: str) -> str:
    """End a message, and add the question of a hint; without a question, it is unchanged."""
    return f"{message}.{question}" if question else message


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the nearest of `names`; None if none is near."""
    for spelling in (name, name.lower()):
        if near := difflib.get_close_matches(spelling, names, n=1):
            return near[0]
    return None


def shown(value: object) -> str:
    """Return the repr of a value, truncated to 100 characters."""
    return truncated(repr(value))


def truncated(text: str) -> str:
    """Return a text, or the first 100 characters of it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def dotted(path: str, *keys: str | int) -> str:
    """Extend a dotted path of a configuration: `model.encoders[0].type`."""
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path


def memory_problem(error: Exception) -> str:
    """Return PyTorch's message about a GPU without memory: what was asked for and what is free."""
    sentences = re.split(r"(?<=\.)\s+", str(error))
    return " ".join(sentences[:3]).removesuffix(".")
