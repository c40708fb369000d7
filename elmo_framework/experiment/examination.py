"""All that can be said about a configuration without training."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_framework.common import build
from elmo_framework.common.config import Config
from elmo_framework.common.errors import ConfigError, DataError, Problem
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.model_report import ModelReport, inspect_model
from elmo_framework.experiment.preflight import preflight


@dataclass(frozen=True)
class Examination:
    """What was found out about a configuration.

    Attributes:
        problems: what is wrong in it and around it.
        report: what is known about its model; data that is missing does not stand in the way.
    """

    problems: tuple[Problem, ...]
    report: ModelReport | None


def examine(config: Config, *, reads_data: bool) -> Examination:
    """Check a configuration, and measure its model where it can be built.

    Args:
        config: as given.
        reads_data: whether the vocabularies are counted in the data.

    Raises:
        DataError: the data, or a biLM, cannot be read although it is there.
    """
    checked = build.check(Experiment, config.raw, source=config.source)
    around = preflight(checked.component) if checked.component else []
    problems = (*checked.problems, *around)
    if checked.problems or checked.component is None:
        return Examination(problems, None)
    try:
        report = inspect_model(checked.component, reads_data=reads_data and not around)
    except ConfigError as error:
        return Examination((*problems, *error.problems), None)
    except DataError:
        if not around:
            raise
        return Examination(problems, None)
    return Examination(problems, report)
