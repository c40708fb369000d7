"""Find runs of a study that have read different content under the same name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from elmo_framework.experiment.config_changes import value_at
from elmo_framework.study.record import Record

_SHOWN_RUNS = 3
_SHOWN_DIGITS = 8


def differing_content(records: Sequence[Record]) -> list[str]:
    """Return a warning for each file or model with other content in some runs than in others.

    A file is known by its path, and a model in separate files by its component and its config.
    A record without a digest of a file, of an earlier version, says nothing about that file.

    Args:
        records: of a study.
    """
    runs: dict[_Source, dict[str, list[str]]] = {}
    for record in records:
        for source, sha256 in _contents(record):
            runs.setdefault(source, {}).setdefault(sha256, []).append(record.name)
    return [
        _warning(source.name, by_content)
        for source, by_content in runs.items()
        if len(by_content) > 1
    ]


class _Source(NamedTuple):
    """A file by its path, or a model in separate files by the config that names it."""

    name: str
    config: str = ""


def _contents(record: Record) -> Iterator[tuple[_Source, str]]:
    """Yield the SHA-256 of each file and model."""
    for path, sha256 in record.digests.get("data", {}).items():
        yield _Source(path), sha256
    for path, sha256 in record.digests.get("files", {}).items():
        yield _Source(str(value_at(record.experiment, path) or path)), sha256
    for module, sha256 in record.digests.get("bilm", {}).items():
        config = json.dumps(value_at(record.experiment, f"model.{module}"), sort_keys=True)
        yield _Source(f"the model of model.{module}", config), sha256


def _warning(name: str, runs: Mapping[str, Sequence[str]]) -> str:
    most, *others = sorted(runs, key=lambda sha256: -len(runs[sha256]))
    names = [run for sha256 in others for run in runs[sha256]]
    listed = ", ".join(names[:_SHOWN_RUNS])
    more = len(names) - _SHOWN_RUNS
    return (
        f"{name} had other content in {listed}{f' and {more} more' if more > 0 else ''} than in "
        f"the other runs (SHA-256 {', '.join(sha256[:_SHOWN_DIGITS] for sha256 in others)} in "
        f"place of {most[:_SHOWN_DIGITS]}): compare their scores with care."
    )
