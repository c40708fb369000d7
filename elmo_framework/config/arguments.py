"""Command lines as dataclasses: the fields of a command are its arguments."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from elmo_framework.config.docstrings import documented
from elmo_framework.io.remote import as_path


@final
@dataclass(frozen=True)
class Argument:
    """The spelling of a field on the command line: `layers: Annotated[str, Argument("NAMES")]`.

    The field decides the rest: its name is the flag, a default makes it optional, a bool takes no
    value, `Literal` lists the choices, and a `Sequence` takes several values.

    Attributes:
        metavar: the value in the help.
        flags: further flags; long ones replace the one that is named after the field.
        is_positional: whether it has no flag.
        parse: reads a value, or raises `ArgumentTypeError`; the type of the field by default.
        takes_many: whether one flag takes all values of a `Sequence`; by default it is repeated.
        group: a heading in the help and an explanation.
        excludes: the name of a set of options of which only one can be given.
    """

    metavar: str | None = None
    flags: tuple[str, ...] = ()
    is_positional: bool = False
    parse: Callable[[str], Any] | None = None
    takes_many: bool = False
    group: tuple[str, str] | None = None
    excludes: str | None = None


def above_zero(text: str) -> int:
    """Parse a positive integer argument."""
    if not (text.isdecimal() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_number(text: str) -> int:
    """Parse an integer argument that may be 0."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a whole number, 0 or above")
    return int(text)


def component(text: str) -> Any:
    """Parse an argument that is a registered name or a JSON object, as in a config."""
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not valid JSON: {error}") from error


AboveZero: TypeAlias = Annotated[int, Argument("N", parse=above_zero)]
BiLm: TypeAlias = Annotated[str, Argument("BILM", is_positional=True)]
ComponentConfig: TypeAlias = Annotated[Any, Argument("NAME", parse=component)]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]
Force: TypeAlias = Annotated[bool, Argument(flags=("-f",))]
Plugins: TypeAlias = Annotated[Sequence[str], Argument("MODULE", flags=("--include-package",))]
RunBiLms: TypeAlias = Annotated[Sequence[str], Argument("PATH", flags=("--bilm",))]


def add_arguments(parser: ArgumentParser, command: type[Any]) -> None:
    """Add an argument for each field of a dataclass, described by its docstring."""
    containers: dict[Any, _ActionsContainer] = {None: parser}
    hints, texts = get_type_hints(command, include_extras=True), documented(command)
    for field in fields(command):
        hint, argument = _split(hints[field.name])
        key = argument.group or argument.excludes
        if key not in containers:
            containers[key] = (
                parser.add_argument_group(*argument.group)
                if argument.group
                else parser.add_mutually_exclusive_group()
            )
        settings = _settings(field, hint, argument)
        text = texts.get(field.name, "").removesuffix(".") or None
        containers[key].add_argument(*_names(field, argument), help=text, **settings)


def read_arguments(command: type[Any], namespace: Namespace) -> Any:
    """Make a dataclass from its parsed arguments."""
    return command(**{field.name: getattr(namespace, field.name) for field in fields(command)})


def _split(hint: Any) -> tuple[Any, Argument]:
    """Return a type without `None` and annotations, and what its annotations state together."""
    merged: dict[str, Any] = {}
    while (origin := get_origin(hint)) in (Annotated, Union, UnionType):
        hint, *others = (each for each in get_args(hint) if each is not NoneType)
        if origin is Annotated:
            inner = [vars(each) for each in others if isinstance(each, Argument)]
            for properties in [*inner, merged]:  # the outer ones replace the inner ones
                merged = {**merged, **{key: value for key, value in properties.items() if value}}
    return hint, Argument(**merged)


def _names(field: Field[Any], argument: Argument) -> list[str]:
    if argument.is_positional:
        return [field.name]
    if any(flag.startswith("--") for flag in argument.flags):
        return [*argument.flags]
    name = field.name.replace("_", "-")
    return [*argument.flags, f"--{name}" if len(name) > 1 else f"-{name}"]


def _settings(field: Field[Any], hint: Any, argument: Argument) -> dict[str, Any]:
    """Return the keyword arguments of `add_argument`."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    is_required = default is MISSING
    settings: dict[str, Any] = {"default": None if is_required else default}
    if not argument.is_positional:
        settings |= {"dest": field.name, "required": is_required}
    if hint is bool:
        return {**settings, "action": "store_true"}
    is_sequence = get_origin(hint) is Sequence
    if is_sequence and default == ():
        settings["default"] = []  # `append` adds to a copy of it
    item = get_args(hint)[0] if is_sequence else hint
    if get_origin(item) is Literal:
        settings["choices"] = get_args(item)
    elif item is not Any or argument.parse:
        settings["type"] = argument.parse or (as_path if item is Path else item)
    return {**settings, "metavar": argument.metavar, **_count(argument, is_sequence, is_required)}


def _count(argument: Argument, is_sequence: bool, is_required: bool) -> dict[str, str]:
    if argument.is_positional and not is_required:
        return {"nargs": "*" if is_sequence else "?"}
    if is_sequence:
        is_one_flag = argument.is_positional or argument.takes_many
        return {"nargs": "+"} if is_one_flag else {"action": "append"}
    return {}
