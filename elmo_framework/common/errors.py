"""Errors that a user can cause and can repair."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class ElmoFrameworkError(Exception):
    """Base of every error whose cause is outside the code: a config, a file, the data."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a configuration, and where."""

    path: str
    message: str


class ConfigError(ElmoFrameworkError):
    """A configuration that describes no runnable job; holds every problem, not the first."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        noun = "problem" if len(problems) == 1 else "problems"
        lines = [f"{source}: {len(problems)} {noun} in the configuration"]
        lines += [f"  {problem.path or '(top level)'}: {problem.message}" for problem in problems]
        super().__init__("\n".join(lines))


class BuildError(ElmoFrameworkError):
    """A valid configuration whose component refused its arguments when it was built."""


class DataError(ElmoFrameworkError):
    """A file, or a line of it, that cannot be used as it is."""

    def __init__(
        self, message: str, *, path: Path | None = None, line: int | None = None
    ) -> None:
        self.path, self.line = path, line
        where = [str(part) for part in (path, line) if part is not None]
        super().__init__(": ".join([":".join(where), message]) if where else message)


class RunError(ElmoFrameworkError):
    """A run that cannot start, go on or be loaded: its folder, its device, its parts."""


def allowed(name: str, names: Iterable[str]) -> str:
    """Say what `name` could have been: the allowed names and the nearest of them."""
    known = sorted(names)
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"allowed: {', '.join(known) or '(none)'}.{hint}"


def dotted(path: str, *keys: str | int) -> str:
    """Extend the path of a configuration's value: `model.encoders[0].type`."""
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path
