"""Sizes are inferred; one that a config states as well is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from elmo_framework.common.errors import ConfigError, Problem, dotted

_path: ContextVar[str] = ContextVar("path of the component being built", default="")
_collected: ContextVar[list[Problem] | None] = ContextVar("size problems", default=None)


def require_size(key: str, stated: int | None, *, inferred: int) -> None:
    """Refuse a stated size that is not the inferred one.

    Inside `collecting_size_problems` it is noted, and building goes on with the inferred size.

    Args:
        key: the config key that states it.
        stated: what the config says; None when it leaves the size to be inferred.
        inferred: what the parts before this one give.

    Raises:
        ValueError: they differ.
    """
    if stated is None or stated == inferred:
        return
    message = (
        f"is {stated}, but the vectors that arrive are {inferred} wide; "
        f"remove {key} or set it to {inferred}"
    )
    problems = _collected.get()
    if problems is None:
        raise ValueError(f"{key} {message}")
    problems.append(Problem(dotted(_path.get(), key), message))


def refuse(problems: Sequence[Problem], *, source: str) -> None:
    """Refuse a configuration for what only its built parts could show.

    Inside `collecting_size_problems` the problems are noted, and building goes on.

    Args:
        problems: each at its dotted path; without any nothing happens.
        source: the file of the configuration.

    Raises:
        ConfigError: there are problems.
    """
    collected = _collected.get()
    if collected is not None:
        collected += problems
    elif problems:
        raise ConfigError(source, problems)


@contextmanager
def collecting_size_problems() -> Iterator[list[Problem]]:
    """Note the wrong sizes of everything built inside, instead of stopping at the first."""
    problems: list[Problem] = []
    token = _collected.set(problems)
    try:
        yield problems
    finally:
        _collected.reset(token)


@contextmanager
def building(path: str) -> Iterator[None]:
    """Say which component of a config is being built, for the problems noted meanwhile."""
    token = _path.set(path)
    try:
        yield
    finally:
        _path.reset(token)
