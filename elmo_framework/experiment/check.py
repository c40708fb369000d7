"""Check a config without training: the one check of `elmo check` and `elmo train`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path

import torch

from elmo_framework.config import parse
from elmo_framework.config.load import Config
from elmo_framework.config.registry import member_classes
from elmo_framework.config.resolve import existing_paths
from elmo_framework.config.signature import component_class, literals, show
from elmo_framework.config.types import Lazy, MustExist
from elmo_framework.data.formats.text_files import matches
from elmo_framework.data.reader import readers_of
from elmo_framework.errors import ConfigError, DataError, Problem, allowed, dotted
from elmo_framework.experiment.experiment import Experiment, VocabularyOptions
from elmo_framework.experiment.model_report import ModelReport, inspect_model, model_problems
from elmo_framework.io.files import path_hint
from elmo_framework.io.remote import HubPath, RemotePath, archive_path
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.head import Head


@dataclass(frozen=True)
class CheckResult:
    """The problems of a config; without any, its experiment.

    Attributes:
        source: the file of the config.
        problems: all problems of the config and of the files that it names.
        parsed: the experiment as the config describes it; in the place of a problem a part is
            missing or None.
        report: on the model and the built experiment; None if either cannot be built.
    """

    source: str
    problems: tuple[Problem, ...]
    parsed: Lazy[Experiment] | None = field(repr=False)
    report: ModelReport | None

    def unwrap(self) -> tuple[Lazy[Experiment], Experiment]:
        """Return the experiment as the config describes it, and built.

        Raises:
            ConfigError: there are problems.
        """
        if self.problems or self.parsed is None or self.report is None:
            raise ConfigError(self.source, self.problems)
        return self.parsed, self.report.experiment


def check_config(config: Config, *, reads_data: bool = False) -> CheckResult:
    """Check a config, and measure its model where it can be built.

    The model is built without memory for its weights, so that a wrong size is reported together
    with a missing file and an unknown key.

    Args:
        config: evaluated, with its overrides.
        reads_data: whether the vocabularies are counted in the data.

    Raises:
        DataError: the data cannot be read although it exists.
    """
    parsed = parse.check(Experiment, config.raw, source=config.source)
    experiment = parsed.component
    if experiment is None:
        return CheckResult(config.source, parsed.problems, None, None)
    preflight_problems = preflight(experiment)
    problems, report = [*parsed.problems, *preflight_problems], None
    try:
        if parsed.problems:
            problems += _not_caused_by(
                preflight_problems, _size_problems(experiment, parsed.problems)
            )
        else:
            report = inspect_model(experiment, reads_data=reads_data and not preflight_problems)
    except ConfigError as error:
        problems += _not_caused_by(preflight_problems, error.problems)
    except DataError:
        if not problems:
            raise
    return CheckResult(config.source, tuple(problems), experiment, report)


def _not_caused_by(causes: Sequence[Problem], problems: Sequence[Problem]) -> list[Problem]:
    """Leave out components that cannot be built because of a problem inside them."""
    return [
        problem
        for problem in problems
        if not any(cause.path.startswith(f"{problem.path}.") for cause in causes)
    ]


def _size_problems(experiment: Lazy[Experiment], problems: tuple[Problem, ...]) -> list[Problem]:
    """List the wrong sizes of a model in whose own block nothing else is wrong."""
    if any(problem.path.split(".")[0] in ("", "model") for problem in problems):
        return []
    return model_problems(experiment.arguments["model"])


def preflight(experiment: Lazy[Experiment]) -> list[Problem]:
    """List what would stop a run or have no effect, and signatures cannot express.

    Missing files, a reader or a metric of another task, limits of a vocabulary that is not
    counted, a missing device.

    Parts that could not be parsed are skipped.
    """
    return [
        *_missing_paths(experiment),
        *_readers_of_another_task(experiment),
        *_metrics_of_another_task(experiment),
        *_limits_of_uncounted_vocabularies(experiment),
        *_missing_device(experiment),
    ]


def _missing_paths(experiment: Lazy[Experiment]) -> Iterator[Problem]:
    for leaf, mark in existing_paths(experiment):
        yield from _missing(leaf.value, leaf.path, literals(leaf.hint), mark)


def _missing(value: Path, path: str, names: Sequence[str], mark: MustExist) -> Iterator[Problem]:
    file = archive_path(value).file
    choices = f" It is not a known name either; {allowed(str(value), names)}" if names else ""
    if isinstance(file, RemotePath):
        if not (mark.may_be_remote or (mark.is_reference and isinstance(file, HubPath))):
            message = f"{str(file)!r} is an address, which is not downloaded: fetch it, and name"
            yield Problem(path, f"{message} the file.{choices}")
        elif reason := file.problem():
            yield Problem(path, f"{str(file)!r} cannot be read: {reason}")
    elif not _exists(file):
        yield Problem(path, _absence(file) + choices)


def _exists(path: Path) -> bool:
    try:
        return path.exists() or (has_magic(str(path)) and any(matches(path)))
    except (OSError, ValueError, DataError):  # refused by the file system, as too long, or by glob
        return False


def _absence(path: Path) -> str:
    """Describe a missing path: its first missing folder, and the nearest name that exists."""
    if has_magic(str(path)):
        return f"no file matches {str(path)!r} (looked for in {Path.cwd()})"
    first = next(part for part in (*reversed(path.parents), path) if not _exists(part))
    cause = "" if first == path else f"; the folder {str(first)!r} is missing"
    return f"{str(path)!r} does not exist (looked for in {Path.cwd()}){cause}.{path_hint(path)}"


def _readers_of_another_task(experiment: Lazy[Experiment]) -> Iterator[Problem]:
    model = experiment.arguments.get("model")
    if not isinstance(model, Lazy):
        return
    required = component_class(model.factory).task.example_type
    for key in ("dataset_reader", "validation_dataset_reader", "test_dataset_reader"):
        reader = experiment.arguments.get(key)
        if not isinstance(reader, Lazy):
            continue
        example_type = component_class(reader.factory).example_type
        if example_type is not required:
            yield Problem(
                dotted(key, "type"),
                f"{reader.name!r} reads {example_type.__name__}, but the model "
                f"{model.name!r} takes {required.__name__}; "
                f"readers that fit: {_listed(readers_of(required))}",
            )


def _metrics_of_another_task(experiment: Lazy[Experiment]) -> Iterator[Problem]:
    model = experiment.arguments.get("model")
    head = component_class(model.factory) if isinstance(model, Lazy) else None
    if not isinstance(model, Lazy) or head is None or not issubclass(head, Head):
        return
    predicted = head.task.prediction_type()
    for lazy in model.arguments.get("metrics") or ():
        metric = component_class(lazy.factory) if isinstance(lazy, Lazy) else None
        if metric is None or metric.accepts(predicted):
            continue
        models = [
            name
            for name, each in member_classes(Head).items()
            if metric.accepts(each.task.prediction_type())
        ]
        metrics = member_classes(Metric).items()
        fitting = [name for name, each in metrics if each.accepts(predicted)]
        yield Problem(
            lazy.path,
            f"{lazy.name!r} compares {show(metric.prediction_type())}, but the model "
            f"{model.name!r} predicts {show(predicted)}; it is for the models "
            f"{_listed(models)}; metrics that fit: {_listed(fitting)}",
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"


def _limits_of_uncounted_vocabularies(experiment: Lazy[Experiment]) -> Iterator[Problem]:
    model, options = (experiment.arguments.get(key) for key in ("model", "vocabulary"))
    if not isinstance(model, Lazy) or not isinstance(options, VocabularyOptions):
        return
    counted = {*component_class(model.factory).task.count([])}
    counted |= {"characters"} if "words" in counted else set()
    for key, limits in (
        ("min_count", options.min_count),
        ("max_vocab_size", options.max_vocab_size),
    ):
        for name in limits:
            if name not in counted:
                yield Problem(
                    dotted("vocabulary", key, name),
                    f"the model {model.name!r} counts no {name!r}; {allowed(name, counted)}",
                )


def _missing_device(experiment: Lazy[Experiment]) -> Iterator[Problem]:
    trainer = experiment.arguments.get("trainer")
    device = trainer.arguments.get("device") if isinstance(trainer, Lazy) else None
    if device == "cuda" and not torch.cuda.is_available():
        yield Problem(
            "trainer.device",
            "'cuda' needs a GPU that torch can use, and there is none; use 'auto' or 'cpu'",
        )
