"""From a file to JSON types: jsonnet, external variables, overrides."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import _jsonnet  # type: ignore[import-untyped]

from elmo_framework.common.errors import ConfigError, Problem, UnreadableConfigError, shown
from elmo_framework.common.overrides import with_overrides
from elmo_framework.common.plural import plural

_MOST_LINES = 20


@dataclass(frozen=True)
class Config:
    """A configuration before it is checked.

    Attributes:
        raw: its value, overrides applied.
        source: the file, for messages.
        text: the file as it was found.
        files: the file and those that it imports.
    """

    raw: dict[str, Any]
    source: str
    text: str
    files: tuple[Path, ...] = ()

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        overrides: Sequence[str] = (),
        external_variables: Mapping[str, str] | None = None,
    ) -> Config:
        """Read a jsonnet or JSON file and change it.

        Args:
            path: the file; its imports are relative to it.
            overrides: `dotted.key=VALUE`, or an object whose keys may be dotted; in order.
            external_variables: what `std.extVar` gives, before the environment's variables.

        Raises:
            ConfigError: it cannot be read or evaluated, or an override touches nothing.
        """
        source, text = str(path), _read(Path(path))
        variables = _encodable({**os.environ, **(external_variables or {})})
        importer = _Importer()
        raw = _evaluate(source, text, variables, importer)
        if not isinstance(raw, dict):
            raise UnreadableConfigError(source, f"expected an object, not {shown(raw)}")
        raw = with_overrides(
            raw,
            overrides,
            source=source,
            evaluate=lambda snippet: _evaluate("--overrides", snippet, variables, importer),
        )
        return cls(raw, source, text, (Path(path), *importer.files))

    @property
    def plugins(self) -> list[str]:
        """The modules to import before the configuration is checked.

        Raises:
            ConfigError: the key `plugins` holds something else than names.
        """
        named = self.raw.get("plugins", [])
        if not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
            message = f"expected a list of names of modules, not {shown(named)}"
            raise ConfigError(self.source, [Problem("plugins", message)])
        return named


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        _refuse(f"{path}:{line}", f"is not UTF-8: byte {error.object[error.start]:#04x}")
    except IsADirectoryError:
        _refuse(path, "is a folder; name a .jsonnet or .json file")
    except FileNotFoundError:
        _refuse(path, f"there is no such file (looked for in {Path.cwd()})")
    except OSError as error:
        _refuse(path, error.strerror or str(error))


class _Importer:
    """Reads what jsonnet imports, as jsonnet itself does, and lists the files."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def __call__(self, folder: str, name: str) -> tuple[str, bytes]:
        """Return the path and the content of a file.

        Args:
            folder: that of the importing file.
            name: as it is written there.
        """
        path = Path(folder, name)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RuntimeError(error.strerror or str(error)) from error
        self.files.append(path)
        return str(path), content


def _evaluate(source: str, text: str, variables: Mapping[str, str], importer: _Importer) -> Any:
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        _refuse(f"{source}:{line}", "is not text: it contains a null character")
    try:
        written = _jsonnet.evaluate_snippet(
            source, text, ext_vars=variables, import_callback=importer
        )
        return json.loads(written)
    except (RuntimeError, UnicodeDecodeError) as error:
        _refuse(source, _said_by_jsonnet(str(error)))


def _refuse(where: Path | str, message: str) -> NoReturn:
    raise UnreadableConfigError(str(where), message) from None


def _said_by_jsonnet(message: str) -> str:
    """Keep what jsonnet says, as it names file, line and column; add what can be done."""
    lines = message.strip().expandtabs(4).splitlines()
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"    ... ({plural(len(lines) - _MOST_LINES, 'more line')})"]
    if missing := re.search(r"undefined external variable: (.*)", lines[0]):
        name = missing[1]
        lines[0] += f"; set it in the environment or by --ext-var {name}=VALUE"
    return "\n".join(lines)


def _encodable(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out what jsonnet cannot take: variables of the environment that are not UTF-8."""
    return {
        name: value
        for name, value in variables.items()
        if not re.search(r"[\ud800-\udfff]", name + value)
    }
