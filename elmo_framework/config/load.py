"""Load configurations: jsonnet, external variables and overrides."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import _jsonnet  # type: ignore[import-untyped]

from elmo_framework.console import plural
from elmo_framework.errors import (
    ConfigError,
    Problem,
    UnreadableConfigError,
    allowed,
    dotted,
    shown,
)

_MAX_ERROR_LINES = 20


@dataclass(frozen=True)
class Translation:
    """A configuration that was written for another program, as one of ours.

    Attributes:
        raw: ours, as JSON types.
        text: the same as jsonnet, with comments.
        summary: a table of what became of the keys of the other program.
    """

    raw: dict[str, Any]
    text: str
    summary: str


Translator: TypeAlias = Callable[[Mapping[str, Any], str], Translation | None]
"""Translates a configuration, and takes its file for messages; None for one of ours."""


@dataclass(frozen=True)
class Config:
    """A configuration before it is checked.

    Attributes:
        raw: JSON types, with overrides applied; translated, if it was of another program.
        source: the file, for messages.
        text: the content of the file.
        files: the file and those that it imports.
        translation: of a configuration of another program; None for one of ours.
    """

    raw: dict[str, Any]
    source: str
    text: str
    files: tuple[Path, ...] = ()
    translation: Translation | None = None

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        overrides: Sequence[str] = (),
        external_variables: Mapping[str, str] | None = None,
        translators: Sequence[Translator] = (),
    ) -> Config:
        """Read a jsonnet or JSON file, apply overrides, and translate it if it is not ours.

        Args:
            path: the file; its imports are relative to it.
            overrides: `dotted.key=VALUE`, or an object whose keys may be dotted; in order.
            external_variables: for `std.extVar`, with precedence over environment variables.
            translators: of the configurations of other programs; the first that applies is used.

        Raises:
            ConfigError: it cannot be read, evaluated or translated, or an override matches no key.
        """
        source, text = str(path), _read(Path(path))
        variables = _encodable({**os.environ, **(external_variables or {})})
        files = [Path(path)]
        raw = _evaluate(source, text, variables, files)
        if not isinstance(raw, dict):
            raise UnreadableConfigError(source, f"expected an object, not {shown(raw)}")
        raw = with_overrides(
            raw,
            overrides,
            source=source,
            evaluate=lambda snippet: _evaluate("--overrides", snippet, variables, files),
        )
        translations = (translate(raw, source) for translate in translators)
        translation = next((each for each in translations if each is not None), None)
        raw = raw if translation is None else translation.raw
        return cls(raw, source, text, tuple(files), translation)

    @property
    def plugins(self) -> list[str]:
        """The modules to import before the configuration is checked.

        Raises:
            ConfigError: the key `plugins` is not a list of names.
        """
        modules = self.raw.get("plugins", [])
        if not (isinstance(modules, list) and all(isinstance(name, str) for name in modules)):
            message = f"expected a list of module names, not {shown(modules)}"
            raise ConfigError(self.source, [Problem("plugins", message)])
        return modules


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        _refuse(f"{path}:{line}", f"is not UTF-8: byte {error.object[error.start]:#04x}")
    except IsADirectoryError:
        _refuse(path, "is a folder; pass a .jsonnet or .json file")
    except FileNotFoundError:
        _refuse(path, f"file not found (in {Path.cwd()})")
    except OSError as error:
        _refuse(path, error.strerror or str(error))


def _evaluate(source: str, text: str, variables: Mapping[str, str], files: list[Path]) -> Any:
    """Evaluate jsonnet; append the files that it imports to `files`."""

    def load(folder: str, name: str) -> tuple[str, bytes]:
        path = Path(folder, name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RuntimeError(error.strerror or str(error)) from error
        files.append(path)
        return str(path), content

    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        _refuse(f"{source}:{line}", "is not text: it contains a null character")
    try:
        return json.loads(
            _jsonnet.evaluate_snippet(source, text, ext_vars=variables, import_callback=load)
        )
    except (RuntimeError, UnicodeDecodeError) as error:
        _refuse(source, _jsonnet_message(str(error)))


def _refuse(where: Path | str, message: str) -> NoReturn:
    raise UnreadableConfigError(str(where), message) from None


def _jsonnet_message(message: str) -> str:
    """Shorten the message of jsonnet, which has file, line and column; add the remedy."""
    lines = message.strip().expandtabs(4).splitlines()
    if len(lines) > _MAX_ERROR_LINES:
        lines[_MAX_ERROR_LINES:] = [
            f"    ... ({plural(len(lines) - _MAX_ERROR_LINES, 'more line')})"
        ]
    if missing := re.search(r"undefined external variable: (.*)", lines[0]):
        name = missing[1]
        lines[0] += f"; set it in the environment or by --ext-var {name}=VALUE"
    return "\n".join(lines)


def _encodable(variables: Mapping[str, str]) -> dict[str, str]:
    """Drop environment variables that are not UTF-8, which jsonnet rejects."""
    return {
        name: value
        for name, value in variables.items()
        if not re.search(r"[\ud800-\udfff]", name + value)
    }


_KEY = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")

logger = logging.getLogger(__name__)


def with_overrides(
    raw: dict[str, Any],
    overrides: Sequence[str],
    *,
    source: str,
    evaluate: Callable[[str], Any],
) -> dict[str, Any]:
    """Return a configuration with changes applied in order.

    The last key may be new; every key before it must exist. A string on the way is the short form
    of a component, and becomes `{type: STRING}`. An object replaces the previous value completely.

    Args:
        raw: the configuration.
        overrides: `dotted.key=VALUE`, VALUE being JSON or else a string; or an object of
            jsonnet whose keys may be dotted.
        source: the file of the configuration, for messages.
        evaluate: evaluates jsonnet to JSON types.

    Raises:
        ConfigError: with every override that is malformed or matches no key.
    """
    changed = deepcopy(raw)
    problems: list[Problem] = []
    for override in overrides:
        try:
            pairs = list(_pairs(override, evaluate))
        except ConfigError as error:
            problems += error.problems
            continue
        for key, value in pairs:
            try:
                _warn_of_loss(key, _apply(changed, key, value), value)
            except ConfigError as error:
                problems += error.problems
    if problems:
        raise ConfigError(f"{source} with --overrides", problems)
    return changed


def with_merged(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with changes in the form of an object.

    A key with dots or brackets replaces a value, as in `with_overrides`. Any other key is merged:
    an object changes the keys that it has, unless it has another `type` than the object before it.

    Raises:
        ConfigError: with every dotted key that matches nothing.
    """
    changed = deepcopy(dict(raw))
    problems: list[Problem] = []
    for key, value in changes.items():
        if not re.search(r"[.\[]", key):
            changed[key] = _merged(changed.get(key), value)
            continue
        try:
            _apply(changed, key, deepcopy(value))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError("overrides", problems)
    return changed


def _merged(before: Any, change: Any) -> Any:
    if isinstance(before, str) and isinstance(change, dict) and "type" not in change:
        before = {"type": before}  # the short form of a component
    if not (isinstance(before, dict) and isinstance(change, dict)):
        return deepcopy(change)
    if change.get("type", before.get("type")) != before.get("type"):
        return deepcopy(change)
    merged = {key: _merged(before.get(key), value) for key, value in change.items()}
    return {**before, **merged}


def _pairs(override: str, evaluate: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    if override.lstrip().startswith("{"):
        yield from evaluate(override).items()
        return
    key, equals, text = override.partition("=")
    if not equals:
        raise _refusal(override, "is neither dotted.key=VALUE nor an object {...}")
    yield key.strip(), _value(text)


def _value(text: str) -> Any:
    """Read JSON; other text is a string, also NaN, Infinity and 1e400."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return text
    return value


def _apply(raw: dict[str, Any], key: str, value: Any) -> Any:
    """Set a value, and return the one before it."""
    if not _KEY.fullmatch(key):
        raise _refusal(key, "not a dotted key such as trainer.num_epochs or callbacks[0].type")
    *parents, last = re.findall(r"[^.\[\]]+", key)
    node: Any = raw
    path = ""
    for parent in parents:
        index = _index(node, parent, key, path, may_add=False)
        if isinstance(node[index], str):
            node[index] = {"type": node[index]}
        node, path = node[index], dotted(path, index)
    index = _index(node, last, key, path, may_add=True)
    before = node.get(index) if isinstance(node, dict) else node[index]
    node[index] = value
    return before


def _index(node: Any, part: str, key: str, path: str, *, may_add: bool) -> str | int:
    """Return the key or index in `node` that one part of a dotted key means."""
    here = path or "the configuration"
    match node:
        case dict() if may_add or part in node:
            return part
        case dict():
            advice = f" To add it, pass a whole object: {dotted(path, part)}={{...}}"
            raise _refusal(key, f"{here} has no key {part!r}; {allowed(part, node)}{advice}")
        case list() if part.isdecimal() and int(part) < len(node):
            return int(part)
        case list():
            items = plural(len(node), "item")
            raise _refusal(key, f"{here} is a list of {items}, numbered from 0; no item {part!r}")
        case _:
            raise _refusal(key, f"{here} is {shown(node)}, which has no keys")


def _warn_of_loss(key: str, old: object, new: object) -> None:
    if (
        isinstance(old, dict)
        and isinstance(new, dict)
        and (lost := sorted(old.keys() - new.keys()))
    ):
        message = "--overrides: replacing %s drops %s; use dotted keys to change single keys"
        logger.warning(message, key, ", ".join(lost))


def _refusal(key: str, message: str) -> ConfigError:
    return ConfigError("--overrides", [Problem(key, message)])
