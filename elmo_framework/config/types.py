"""Types for the parameters of a component: `Lazy`, `Injected`, `Local`, `Default`, sizes.

The constructor of a class, or a registered function, is the schema. Its parameters are of four
kinds:

* a plain type (`int`, `Path`, `Literal[...]`) or a dataclass of plain types: from the config;
* a `Registrable` type, alone, in a list or in a dict: built from a nested object of the config;
* the same inside `Lazy[...]`: passed unbuilt, for the owner to build with further arguments;
* `Injected[T]` and `Local[T]`: supplied by the code that builds, never by a config.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

from annotated_types import Ge, Gt, Le, Lt

from elmo_framework.errors import (
    TOP_LEVEL,
    BuildError,
    ConfigError,
    DataError,
    ElmoFrameworkError,
    MissingExtraError,
    Problem,
    dotted,
    shown,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Component:
    """Base class of everything built from a configuration; families inherit `Registrable`.

    Attributes:
        default_member: the registered name used if an object has no `type`.
        class_attributes: names of attributes that are read from the class, before it is built.
    """

    default_member: ClassVar[str | None] = None
    class_attributes: ClassVar[tuple[str, ...]] = ()

    def post_init(self) -> None:
        """Apply the keys of a config that all members of a family have, after the constructor.

        A family overrides it with parameters; these are keys of each member, like those of its
        constructor.
        """


Factory: TypeAlias = Callable[..., Component]
"""A class, or a registered function whose return annotation is the class of its result."""


class Supply(Enum):
    """Scope of an argument of `Lazy.build`."""

    TREE = "the component and all that it holds"
    LOCAL = "only the component being built"


Injected = Annotated[T, Supply.TREE]
Local = Annotated[T, Supply.LOCAL]


@dataclass(frozen=True)
class MustExist:
    """Marks a path that must exist before anything is built.

    Attributes:
        is_reference: whether a trained model still needs the file, as its weights are not saved.
        may_be_remote: whether a URL is accepted; see `io.remote.RemotePath`.
    """

    is_reference: bool = False
    may_be_remote: bool = False


ExistingPath = Annotated[Path, MustExist()]
TextPath = Annotated[Path, MustExist(may_be_remote=True)]
"""A file, a folder or a pattern of text, which may be a URL."""
ReferencedPath = Annotated[Path, MustExist(is_reference=True)]
"""A separate model, such as a frozen biLM, that is read whenever a run is loaded."""


@dataclass(frozen=True)
class Default:
    """The JSON default of a component: `Annotated[LayerMix, Default("average")]`.

    A built object as a Python default could not be written to a file.
    """

    raw: Any


@dataclass(frozen=True)
class Lazy(Generic[T_co]):
    """A component that is checked but not built yet.

    Attributes:
        factory: the class to build, or the function that builds it.
        name: the `type` it is registered under, if any.
        arguments: the checked configuration; components in it are `Lazy`.
        supplies: the parameters that code supplies.
        source: the file of the configuration, for messages.
        path: the dotted path inside it, for messages.
        is_kept: whether the owner's constructor receives it unbuilt.
        inherited: the values supplied to the owner.
    """

    factory: Callable[..., T_co]
    name: str | None
    arguments: Mapping[str, Any]
    supplies: Mapping[str, Supply]
    source: str
    path: str
    is_kept: bool
    inherited: Mapping[str, Any] = field(default_factory=dict)

    def build(self, **supplied: Any) -> T_co:
        """Build the component and its nested components.

        Args:
            supplied: values by parameter name. A value that this component declares `Local` stops
                here; all others, and those supplied to the owner, reach every `Injected` parameter
                of that name below.
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
                own = inspect.signature(self.factory).parameters
                component = self.factory(**_without(arguments.keys() - own, arguments))
                if not isinstance(component, Component):
                    raise TypeError(f"{self.factory.__qualname__} returned {shown(component)}")
                component.post_init(**_without({*own}, arguments))
                return component
        except DataError as error:
            error.config_path = error.config_path or self.path  # of the innermost component
            raise
        except MissingExtraError as error:  # a problem like others, so that all are listed at once
            raise BuildError(str(error), source=self.source, path=self.path) from error
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
    """Build the components in an argument, with the supplied values."""
    if isinstance(value, Lazy):
        child = replace(value, inherited=tree)
        return child if child.is_kept else child.build()
    return with_parts(value, lambda item: _hand_down(item, tree))


def with_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a part of a checked configuration with `change` applied to each part inside it."""
    match value:
        case Lazy():
            return replace(value, arguments=change(value.arguments))
        case list() | tuple():
            return type(value)(change(item) for item in value)
        case dict():
            return {key: change(item) for key, item in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value)]
            return replace(value, **{name: change(getattr(value, name)) for name in names})
        case _:
            return value


MAX_LAYERS, MAX_WIDTH, MAX_COUNT = 100, 1000, 10**12

Dim: TypeAlias = Annotated[int, Gt(0), Le(65_536)]
"""Dimension of a vector, or number of filters."""

NumLayers: TypeAlias = Annotated[int, Gt(0), Le(MAX_LAYERS)]
"""Number of stacked layers."""

NumLayersOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_LAYERS)]
"""Number of stacked layers, possibly none."""

Width: TypeAlias = Annotated[int, Gt(0), Le(MAX_WIDTH)]
"""Number of words or characters in a convolution or a span."""

Count: TypeAlias = Annotated[int, Gt(0), Le(MAX_COUNT)]
"""Number of examples, words or updates."""

CountOrZero: TypeAlias = Annotated[int, Ge(0), Le(MAX_COUNT)]
"""Number of examples, words or updates, possibly none."""

DropoutRate: TypeAlias = Annotated[float, Ge(0), Lt(1)]


_path: ContextVar[str] = ContextVar("path of the component being built", default="")
_collected: ContextVar[list[Problem] | None] = ContextVar("size problems", default=None)


def require_size(key: str, stated: int | None, *, inferred: int) -> None:
    """Refuse a size in the config that differs from the inferred one.

    Inside `collecting_size_problems` it is recorded, and building continues with the inferred size.

    Args:
        key: the config key of the size.
        stated: the size in the config; None to infer it.
        inferred: the output size of the preceding components.

    Raises:
        ValueError: they differ.
    """
    if stated is not None and stated != inferred:
        advice = f"remove {key} or set it to {inferred}"
        refuse_key(key, f"is {stated} but the input has dimension {inferred}; {advice}")


def refuse_key(key: str, message: str) -> None:
    """Refuse the value of a key of the component that is being built.

    Inside `collecting_size_problems` the problem is recorded, and building continues.

    Raises:
        ValueError: the key and the message.
    """
    problems = _collected.get()
    if problems is None:
        raise ValueError(f"{key} {message}")
    problems.append(Problem(dotted(_path.get(), key), message))


def refuse(problems: Sequence[Problem], *, source: str) -> None:
    """Raise ConfigError for problems that only the built components could show, if any.

    Inside `collecting_size_problems` the problems are recorded, and building continues.
    """
    collected = _collected.get()
    if collected is not None:
        collected += problems
    elif problems:
        raise ConfigError(source, problems)


@contextmanager
def collecting_size_problems() -> Iterator[list[Problem]]:
    """Collect the wrong sizes of everything built inside, instead of stopping at the first."""
    problems: list[Problem] = []
    token = _collected.set(problems)
    try:
        yield problems
    finally:
        _collected.reset(token)


@contextmanager
def building(path: str) -> Iterator[None]:
    """Set the dotted path of the component being built, for the problems collected meanwhile."""
    token = _path.set(path)
    try:
        yield
    finally:
        _path.reset(token)
