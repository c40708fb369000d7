"""Load configurations: jsonnet, external variables and overrides."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import _jsonnet  # type: ignore[import-untyped]

from elmo_framework.config.overrides import with_overrides
from elmo_framework.console import plural
from elmo_framework.errors import ConfigError, Problem, UnreadableConfigError, shown, with_hint
from elmo_framework.io.files import path_hint

_MAX_ERROR_LINES = 20
_UNDEFINED = re.compile(r"undefined external variable: (.*)")


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
            external_variables: for `std.extVar`, with precedence over environment variables, of
                which those are dropped that are not UTF-8.
            translators: of the configurations of other programs; the first that applies is used.

        Raises:
            ConfigError: it cannot be read, evaluated or translated, or an override matches no key.
        """
        source, text = str(path), _read(Path(path))
        variables = _encodable(os.environ) | dict(external_variables or {})
        if lost := sorted(variables.keys() - _encodable(variables).keys()):
            _refuse(source, f"the external variable {lost[0]!r} is not UTF-8; pass other text")
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

    def overridden(self, overrides: Sequence[str]) -> Config:
        """Return the configuration with changes, as of `load`, of keys of ours.

        Raises:
            ConfigError: an override matches no key.
        """
        raw = with_overrides(
            self.raw,
            overrides,
            source=self.source,
            evaluate=lambda snippet: _evaluate("--overrides", snippet, _encodable(os.environ), []),
        )
        return replace(self, raw=raw)

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
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse_bytes(path, error)
    except IsADirectoryError:
        _refuse(path, "is a folder; pass a .jsonnet or .json file")
    except FileNotFoundError:
        _refuse(path, with_hint(f"file not found (in {Path.cwd()})", path_hint(path)))
    except OSError as error:
        _refuse(path, error.strerror or str(error))


def _evaluate(source: str, text: str, variables: Mapping[str, str], files: list[Path]) -> Any:
    """Evaluate jsonnet; append the files that it imports to `files`."""

    def load(folder: str, name: str) -> tuple[str, bytes]:
        path = Path(folder, name)
        try:
            content = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            _refuse_bytes(path, error)
        except OSError as error:
            raise RuntimeError(error.strerror or str(error)) from error
        _require_no_null(path, content)
        files.append(path)
        return str(path), content.encode()

    _require_no_null(source, text)

    def evaluate(given: Mapping[str, str]) -> str:
        return str(_jsonnet.evaluate_snippet(source, text, ext_vars=given, import_callback=load))

    try:
        return json.loads(evaluate(variables))
    except (RuntimeError, UnicodeDecodeError) as error:
        message = _jsonnet_message(str(error), _undefined(evaluate, variables))
        is_config = Path(source).suffix in ("", ".json", ".jsonnet", ".libsonnet")
        advice = "" if is_config else "; if this is data, `elmo new` writes a config for it"
        _refuse(source, message + advice)


def _undefined(
    evaluate: Callable[[Mapping[str, str]], object], variables: Mapping[str, str]
) -> list[str]:
    """Return the external variables that are not defined; jsonnet stops at the first."""
    names = dict[str, str]()
    while True:
        try:
            evaluate({**variables, **names})
        except (RuntimeError, UnicodeDecodeError) as error:
            name = _UNDEFINED.search(str(error).partition("\n")[0])
            if name is None or name[1] in names:
                return [*names]
            names[name[1]] = ""
        else:
            return [*names]


def _refuse_bytes(path: Path, error: UnicodeDecodeError) -> NoReturn:
    line = error.object.count(b"\n", 0, error.start) + 1
    _refuse(f"{path}:{line}", f"is not UTF-8: byte {error.object[error.start]:#04x}")


def _require_no_null(source: Path | str, text: str) -> None:
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        _refuse(f"{source}:{line}", "is not text: it contains a null character")


def _refuse(where: Path | str, message: str) -> NoReturn:
    raise UnreadableConfigError(str(where), message) from None


def _jsonnet_message(message: str, undefined: Sequence[str]) -> str:
    """Shorten the message of jsonnet, which has file, line and column; add the remedy."""
    lines = message.strip().expandtabs(4).splitlines()
    if len(lines) > _MAX_ERROR_LINES:
        lines[_MAX_ERROR_LINES:] = [
            f"    ... ({plural(len(lines) - _MAX_ERROR_LINES, 'more line')})"
        ]
    if undefined:
        name, *others = undefined
        lines[0] += f"; set it in the environment or by --ext-var {name}=VALUE"
        lines += [f"    also undefined: {', '.join(others)}"] if others else []
    return "\n".join(lines)


def _encodable(variables: Mapping[str, str]) -> dict[str, str]:
    """Drop environment variables that are not UTF-8, which jsonnet rejects."""
    return {
        name: value
        for name, value in variables.items()
        if not re.search(r"[\ud800-\udfff]", name + value)
    }
