"""The model card of a run: `README.md`, written from what the run has recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from elmo_framework.errors import RunError
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.files import write_text

_DATA = ("train", "validation", "test")
_SCORES = {"best_validation_": "validation", "test_": "test"}
_BY_CLASS = re.compile(
    r"(precision|recall|f1-measure)-(?!(?:overall|all|micro|macro|weighted)$)(.+)"
)
_COLUMNS = ("precision", "recall", "f1-measure")
_LICENSE = re.compile(r"^license:.*$", re.MULTILINE)
_CALIBRATION = re.compile(r"^## Calibration$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_UNKNOWN = "unknown"
_ABSOLUTE_PATH = re.compile(
    r"""(?<=")/[^"/\\\n]+/[^"\\\n]+(?=")|(?<=')/[^'/\\\n]+/[^'\\\n]+(?=')"""  # with spaces
    r"""|(?<![^\s='"(\[:`])(?:file://)?/[^\s'"()/\\]+(?:/[^\s'"()\\]+)+"""
)


def write_model_card(run: RunDirectory) -> None:
    """Write the model card of a run, over an existing one."""
    write_text(run.model_card, model_card(run))


def update_model_card(run: RunDirectory) -> None:
    """Write the section about calibration into the model card of a run, and keep the others."""
    section = "\n".join(_section("Calibration", _calibration(run.read(run.calibration))))
    card = _CALIBRATION.sub("", model_card(run)).rstrip()
    write_text(run.model_card, f"{card}\n\n{section}\n")


def model_card(run: RunDirectory, *, license_name: str | None = None) -> str:
    """Return the model card of a run: the one in its folder, or a new one.

    Args:
        run: a run with weights.
        license_name: an identifier such as `apache-2.0`, for the field `license` of the card; by
            default that of the card in the folder.

    Raises:
        RunError: a file of the run is damaged; or the card in the folder, which someone has
            edited, has no field `license` for the given one.
    """
    if run.model_card.is_file():
        text = run.model_card.read_text(encoding="utf-8")
    else:
        text = "".join(f"{line}\n" for line in _lines(run))
    if license_name is None:
        return text
    if not _LICENSE.search(text):
        raise RunError(f"{run.model_card}: it has no line `license: ...` to write the license to")
    return _LICENSE.sub(f"license: {license_name}", text, count=1)


def shorten_paths(text: str) -> str:
    """Replace absolute paths in a text by their last parts; those of a machine help nobody else."""
    return _ABSOLUTE_PATH.sub(lambda path: PurePosixPath(path[0]).name, text)


def _lines(run: RunDirectory) -> Iterator[str]:
    config, metadata, metrics = run.read(run.config), run.read(run.metadata), run.read(run.metrics)
    model = config.get("model")
    kind = model.get("type", "model") if isinstance(model, dict) else "model"
    name = run.path.resolve().name
    yield from ["---", f"license: {_UNKNOWN}", "library_name: elmo-framework", "tags:"]
    yield from ["- elmo", f"- {kind}", "---", "", f"# {name}", ""]
    is_imported = not metrics and run.weights.is_file()
    origin = "imported: it was trained elsewhere" if is_imported else "trained with elmo_framework"
    yield from [f"A model of type `{kind}`, {origin}.", ""]
    if not (metrics or is_imported):
        yield from ["Its training has not ended: these are the best weights so far.", ""]
    yield "```bash"
    use = "evaluate" if (run.path / "bilm").is_dir() else "predict"
    yield from [f"elmo {use} {name} FILE", "```", ""]
    yield from _section("Scores", _scores(metrics))
    yield from _section("Scores by class", _scores_by_class(metrics))
    yield from _section("Calibration", _calibration(run.read(run.calibration)))
    yield from _section("Data", _data(config, run.read_digests().get("data", {})))
    yield from _section("Models that it reads", _models(metadata))
    yield from _section("Training", _training(metadata, metrics))


def _section(title: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield a heading and a table whose first row is its head; nothing without further rows."""
    head, *body = rows
    if not body:
        return
    yield from [f"## {title}", "", _row(head), _row(["---"] * len(head))]
    yield from map(_row, body)
    yield ""


def _row(cells: Sequence[object]) -> str:
    shown = (str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(shown)} |"


def _scores(metrics: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    yield "score", "data", "value"
    for prefix, data in _SCORES.items():
        for name, value in _named(metrics, prefix):
            if not _BY_CLASS.fullmatch(name):
                yield name, data, f"{value:.4g}"


def _scores_by_class(metrics: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    yield "class", "data", *_COLUMNS
    for prefix, data in _SCORES.items():
        classes: dict[str, dict[str, float]] = {}
        for name, value in _named(metrics, prefix):
            if match := _BY_CLASS.fullmatch(name):
                classes.setdefault(match[2], {})[match[1]] = value
        for label, scores in sorted(classes.items()):
            cells = (f"{scores[column]:.4g}" if column in scores else "" for column in _COLUMNS)
            yield label, data, *cells


def _named(metrics: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for name, value in metrics.items():
        if name.startswith(prefix) and isinstance(value, int | float):
            yield name.removeprefix(prefix), value


def _calibration(content: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    yield "property", "value"
    if content:
        yield "temperature", f"{content['temperature']:.4g}"
        if "threshold" in content:
            yield "threshold", f"{content['threshold']:.4g}"
        yield "fitted on", f"{content['data']} (SHA-256 {content['sha256']})"
        for name in ("expected_calibration_error", "negative_log_likelihood", "brier_score"):
            before, after = content["before"][name], content["after"][name]
            yield name.replace("_", " "), f"{before:.4g} before, {after:.4g} after"


def _data(config: Mapping[str, Any], digests: Mapping[str, str]) -> Iterator[Sequence[object]]:
    yield "data", "file", "SHA-256"
    for split in _DATA:
        path, fraction = config.get(f"{split}_data_path"), config.get(f"{split}_fraction")
        if path is not None:
            yield split, _last_part(path), digests.get(path, _UNKNOWN)
        elif fraction is not None:
            yield split, f"{fraction:g} of the training data", ""


def _models(metadata: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    yield "part of the model", "files", "SHA-256"
    for part, record in metadata.get("references", {}).items():
        places = dict.fromkeys(_last_part(file["given"]) for file in record["files"].values())
        yield part, ", ".join(places), record.get("sha256") or _UNKNOWN


def _training(
    metadata: Mapping[str, Any], metrics: Mapping[str, Any]
) -> Iterator[Sequence[object]]:
    yield "property", "value"
    command = metadata.get("command")
    if isinstance(command, list):
        pairs = (word.partition("=") for word in command[1:])
        words = [
            shorten_paths(f"{_last_part(name)}{equals}{_last_part(value)}")
            for name, equals, value in pairs
        ]
        yield "command", f"`{' '.join(['elmo', *words])}`"
    for name in ("training_steps", "best_step", "num_parameters", "num_trainable_parameters"):
        if name in metrics:
            yield name.replace("_", " "), f"{metrics[name]:,}"
    if "training_duration" in metrics:
        duration = timedelta(seconds=round(metrics["training_duration"]))
        yield "duration", f"{duration} on {metadata.get('device', _UNKNOWN)}"
    libraries = metadata.get("libraries", {})
    versions = {"elmo_framework": metadata.get("elmo_framework"), "torch": libraries.get("torch")}
    yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    for name, package in metadata.get("plugins", {}).items():
        yield "plugin", f"{name} {package.get('version')}"


def _last_part(path: object) -> str:
    """Return the last part of an absolute path; other text as it is."""
    text = str(path)
    return text.rstrip("/").rpartition("/")[2] if text.startswith("/") else text
