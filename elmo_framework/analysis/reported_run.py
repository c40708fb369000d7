"""Runs as a report shows them next to each other: metrics, settings and mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Any, TypeAlias, final

from elmo_framework.errors import DataError, RunError
from elmo_framework.experiment.explain import Explanation
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.model.classifier import Classifier
from elmo_framework.model.mistakes import Mistake, Piece
from elmo_framework.model.task import HeadTask

ByClass: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores by class, then by their kind."""

_KINDS = ("precision", "recall", "f1-measure")
_CLASS = re.compile(f"(?:best_validation_)?({'|'.join(_KINDS)})-(.+)", re.DOTALL)

_WINDOW = 12
"""The number of words that are shown before and after a mark."""

_ELLIPSIS = " \N{HORIZONTAL ELLIPSIS} "


@final
@dataclass(frozen=True)
class ErrorSearch:
    """A search for the worst predictions of runs.

    Attributes:
        num_errors: how many are shown.
        file: labeled data; by default the validation data of each run.
        device: `auto`, `cpu` or `cuda`.
    """

    num_errors: int = 20
    file: Path | None = None
    device: str = "auto"


@final
@dataclass(frozen=True)
class ReportedRun:
    """A run as a report shows it.

    Attributes:
        name: distinguishes it from the other runs.
        run: its folder.
        config: with all defaults.
        metadata: versions, machine, digests.
        metrics: of the finished run.
        tables: of its metrics on the data of the search, such as confusions.
        mistakes: its worst predictions on them; None without a search, or if its task shows none.
        explanations: of the predicted labels of these mistakes, if it is a classifier; else empty.
        num_mistakes: the number of all its wrong predictions.
    """

    name: str
    run: RunDirectory
    config: Mapping[str, Any]
    metadata: Mapping[str, Any]
    metrics: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    mistakes: Sequence[Mistake] | None = None
    explanations: Sequence[Explanation] = ()
    num_mistakes: int = 0

    @property
    def by_class(self) -> ByClass:
        return class_scores(self.metrics)


def read_reported_runs(
    runs: Sequence[RunDirectory],
    *,
    errors: ErrorSearch | None = None,
    packages: Sequence[str] = (),
    bilms: Sequence[Path | str] = (),
) -> list[ReportedRun]:
    """Read runs; with `errors`, score them too.

    Raises:
        RunError: with `errors`: a run cannot be loaded, predicts nothing, or has no data.
        DataError: with `errors`: the data cannot be read, or have no labels.
    """
    reported = []
    for run, name in zip(runs, short_names([run.path for run in runs]), strict=True):
        files = run.read(run.config), run.read(run.metadata), run.read(run.metrics)
        searched = {} if errors is None else _mistakes(run, errors, packages, bilms)
        reported.append(ReportedRun(name, run, *files, **searched))
    return reported


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return as many last parts of paths as it takes to distinguish them."""
    parts = [path.resolve().parts for path in paths]
    names: list[str] = []
    for size in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-size:]) for path in parts]
        if len({*names}) == len(names):
            break
    return names


def _mistakes(
    run: RunDirectory, errors: ErrorSearch, packages: Sequence[str], bilms: Sequence[Path | str]
) -> dict[str, Any]:
    loaded = load(run.path, device=errors.device, packages=packages, bilm=bilms)
    head = loaded.head()
    try:
        scored = loaded.score(errors.file, split="validation")
    except DataError as error:
        if errors.file is not None:
            raise
        message = f"{run.path}: its validation data: {error}; name labeled data by --file"
        raise RunError(message) from error
    tables = {"tables": head.tables(scored.sums)}
    if type(head.task).mistake is HeadTask.mistake:
        return tables
    mistakes = [
        (mistake, example)
        for prediction, example in scored.predictions
        if (mistake := head.task.mistake(prediction, example))
    ]
    worst = nlargest(errors.num_errors, mistakes, key=lambda pair: pair[0].weight)
    explain = loaded.explainer() if isinstance(head, Classifier) else None
    return {
        **tables,
        "mistakes": [mistake for mistake, _ in worst],
        "explanations": [explain(example) for _, example in worst] if explain else (),
        "num_mistakes": len(mistakes),
    }


def class_scores(metrics: Mapping[str, Any]) -> ByClass:
    """Return precision, recall and F1 by class, from metrics as `best_validation_recall-CLASS`."""
    by_class: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        match = _CLASS.fullmatch(name)
        if match and isinstance(value, int | float):
            by_class.setdefault(match[2], {})[match[1]] = float(value)
    return {name: each for name, each in by_class.items() if len(each) == len(_KINDS)}


def differing_settings(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the settings in which configs differ: by dotted key, the value in each of them.

    It is empty where a config lacks the key.
    """
    flat = [dict(_flat(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values)
    rows = {key: [values.get(key, "") for values in flat] for key in keys}
    return {key: row for key, row in rows.items() if len({*row}) > 1}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield path, text


def shortened(pieces: Sequence[Piece]) -> list[Piece]:
    """Return a dozen words before and after each mark; without any, the first words."""
    places = [place for place, piece in enumerate(pieces) if piece.mark]
    if not places:
        return [_cut(piece, 2 * _WINDOW, 0) for piece in pieces]
    return [
        piece
        if piece.mark
        else _cut(piece, _WINDOW * (place > places[0]), _WINDOW * (place < places[-1]))
        for place, piece in enumerate(pieces)
    ]


def _cut(piece: Piece, num_first: int, num_last: int) -> Piece:
    words = piece.text.split(" ")
    if len(words) <= num_first + num_last + 1:
        return piece
    first, last = words[:num_first], words[len(words) - num_last :]
    return piece._replace(text=_ELLIPSIS.join((" ".join(first), " ".join(last))))
