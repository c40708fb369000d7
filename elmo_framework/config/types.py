"""What the author of a component writes in its signature: `Lazy`, `Injected`, `Local`, `Default`.

A component's constructor is its schema. Four kinds of parameter:

* a plain type (`int`, `Path`, `Literal[...]`) or a dataclass of plain types: from the config;
* a `Registrable` type, alone, in a list or in a dict: built from a nested object of the config;
* the same inside `Lazy[...]`: kept unbuilt, for the owner to build when it has what is needed;
* `Injected[T]` and `Local[T]`: supplied by the code that builds, never by a config.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

from annotated_types import Ge, Gt, Le

from elmo_framework.errors import (
    TOP_LEVEL,
    BuildError,
    ConfigError,
    DataError,
    ElmoFrameworkError,
    Problem,
    dotted,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Component:
    """Base of all that a configuration can describe; families inherit `Registrable`.

    Attributes:
        default_member: the registered name that an object without a `type` means.
    """

    default_member: ClassVar[str | None] = None


class Supply(Enum):
    """How far a name given to `Lazy.build` reaches."""

    TREE = "the component and all that it holds"
    LOCAL = "only the component being built"


Injected = Annotated[T, Supply.TREE]
Local = Annotated[T, Supply.LOCAL]


@dataclass(frozen=True)
class MustExist:
    """Marks a path that is looked for before anything is built.

    Attributes:
        is_reference: whether a trained model still needs the file, as its weights do not hold it.
    """

    is_reference: bool = False


ExistingPath = Annotated[Path, MustExist()]
ReferencedPath = Annotated[Path, MustExist(is_reference=True)]
"""A model in files of its own, such as a frozen biLM, that is read whenever a run is loaded."""


@dataclass(frozen=True)
class Default:
    """What a config means by leaving a key out, as JSON: `Annotated[LayerMix, Default("average")]`.

    For parameters whose value is built, where a Python default could not be written to a file.
    """

    raw: Any


@dataclass(frozen=True)
class Lazy(Generic[T_co]):
    """A component whose configuration is checked and that is not built yet.

    Attributes:
        factory: the class that the configuration names.
        name: the `type` it is registered under, if any.
        arguments: what the configuration says, checked; components in it are `Lazy`.
        supplies: the parameters that code supplies.
        source: the file of the configuration, for messages.
        path: the dotted path inside it, for messages.
        is_kept: whether the owner's constructor receives it unbuilt.
        inherited: what the owner was supplied with.
    """

    factory: type[T_co]
    name: str | None
    arguments: Mapping[str, Any]
    supplies: Mapping[str, Supply]
    source: str
    path: str
    is_kept: bool
    inherited: Mapping[str, Any] = field(default_factory=dict)

    def build(self, **supplied: Any) -> T_co:
        """Build the component and all that it holds.

        Args:
            supplied: values by parameter name. One that this component declares `Local` stops
                here; every other reaches each `Injected` parameter of that name below, besides
                what the owner was supplied with.
        """
        local = {name for name, supply in self.supplies.items() if supply is Supply.LOCAL}
        tree = {**self.inherited, **_without(local, supplied)}
        available = {**_without(local, tree), **supplied}
        arguments = {name: _hand_down(value, tree) for name, value in self.arguments.items()}
        return self._call(
            **arguments, **{name: available[name] for name in self.supplies if name in available}
        )

    def _call(self, **arguments: Any) -> T_co:
        try:
            with building(self.path):
                return self.factory(**arguments)
        except DataError as error:
            error.config_path = error.config_path or self.path  # that of the innermost component
            raise
        except ElmoFrameworkError:
            raise
        except ValueError as error:
            message = f"{self.factory.__qualname__}: {error}"
            raise BuildError(message, source=self.source, path=self.path) from error
        except Exception as error:
            supplied = ", ".join(name for name in self.supplies if name in arguments)
            where = f"{self.source}: {self.path or TOP_LEVEL}"
            error.add_note(f"while building {where}, supplied with: {supplied or 'nothing'}")
            raise


def _without(names: set[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _hand_down(value: Any, tree: Mapping[str, Any]) -> Any:
    """Make an argument of what the configuration said, passing on what was supplied."""
    match value:
        case Lazy():
            child = replace(value, inherited=tree)
            return child if child.is_kept else child.build()
        case list():
            return [_hand_down(item, tree) for item in value]
        case tuple() if any(isinstance(item, Lazy) for item in value):
            return tuple(_hand_down(item, tree) for item in value)
        case dict():
            return {key: _hand_down(item, tree) for key, item in value.items()}
        case _:
            return value


MAX_LAYERS, MAX_WIDTH, MAX_COUNT = 100, 1000, 10**12

Dim: TypeAlias = Annotated[int, Gt(0), Le(65_536)]
"""The width of a vector, or a number of filters."""

NumLayers: TypeAlias = Annotated[int, Gt(0), Le(MAX_LAYERS)]
"""How many layers are stacked."""

NumLayersOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_LAYERS)]
"""How many layers are stacked, if any."""

Width: TypeAlias = Annotated[int, Gt(0), Le(MAX_WIDTH)]
"""How many words or characters a convolution or a span covers."""

Count: TypeAlias = Annotated[int, Gt(0), Le(MAX_COUNT)]
"""How many examples, words or updates."""

CountOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_COUNT)]
"""How many examples, words or updates, if any."""


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
