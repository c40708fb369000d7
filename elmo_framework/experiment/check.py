"""Check a config without training: the one check of `elmo check` and `elmo train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from elmo_framework.config import parse
from elmo_framework.config.load import Config
from elmo_framework.config.types import Lazy
from elmo_framework.errors import ConfigError, DataError, Problem
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.model_report import ModelReport, inspect_model, model_problems
from elmo_framework.experiment.preflight import preflight


@dataclass(frozen=True)
class CheckResult:
    """What a check of a config has found.

    Attributes:
        source: the file of the config.
        problems: everything that is wrong in it and around it.
        experiment: what it describes; where a problem is, a part is missing or None.
        report: what is known about its model; None where the model cannot be built.
    """

    source: str
    problems: tuple[Problem, ...]
    experiment: Lazy[Experiment] | None = field(repr=False)
    report: ModelReport | None

    def unwrap(self) -> Lazy[Experiment]:
        """Return the experiment.

        Raises:
            ConfigError: there are problems.
        """
        if self.experiment is None or self.problems:
            raise ConfigError(self.source, self.problems)
        return self.experiment


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
    outside = preflight(experiment)
    problems, report = [*parsed.problems, *outside], None
    try:
        if parsed.problems:
            problems += _sound_model_problems(experiment, parsed.problems)
        else:
            report = inspect_model(experiment, reads_data=reads_data and not outside)
    except ConfigError as error:
        problems += _not_explained(error.problems, outside)
    except DataError:
        if not problems:
            raise
    return CheckResult(config.source, tuple(problems), experiment, report)


def _not_explained(problems: Sequence[Problem], outside: Sequence[Problem]) -> list[Problem]:
    """Leave out components that cannot be built because one of their files is missing."""
    return [
        problem
        for problem in problems
        if not any(cause.path.startswith(f"{problem.path}.") for cause in outside)
    ]


def _sound_model_problems(
    experiment: Lazy[Experiment], problems: tuple[Problem, ...]
) -> list[Problem]:
    """List the wrong sizes of a model in whose own block nothing else is wrong."""
    if any(problem.path.split(".")[0] in ("", "model") for problem in problems):
        return []
    return model_problems(experiment.arguments["model"])
