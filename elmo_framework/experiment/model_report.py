"""What can be known about the model of a configuration before it is trained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from elmo_framework.config.patterns import no_match
from elmo_framework.config.types import Component, Lazy, collecting_size_problems
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, ConfigError, DataError, Problem, dotted
from elmo_framework.experiment.budget import size_budget
from elmo_framework.experiment.data_sets import count_vocabularies
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.parameter_counts import (
    Amount,
    Count,
    PlaceholderVocabularies,
    Trials,
    count_parameters,
    frozen_parameters,
)
from elmo_framework.model.model import Model
from elmo_framework.training.evaluator import metric_problem

BuiltT = TypeVar("BuiltT")


@dataclass(frozen=True)
class Width:
    """The sizes of one component.

    Attributes:
        name: where it stands in the model.
        kind: its class.
        input_dim: the width that it takes, if it says so.
        output_dim: the width that it gives.
    """

    name: str
    kind: str
    input_dim: Amount | None
    output_dim: Amount


@dataclass(frozen=True)
class ModelReport:
    """What is known about the model of a configuration.

    Attributes:
        widths: of its components.
        counts: of the parameters of its parts.
        frozen: the parameters of frozen biLMs, which it reads and does not hold.
        vocabularies: the sizes of the vocabularies, where the data was read.
    """

    widths: list[Width]
    counts: list[Count]
    frozen: Mapping[str, int]
    vocabularies: Mapping[str, int]


def inspect_model(experiment: Lazy[Experiment], *, reads_data: bool) -> ModelReport:
    """Build a model without memory for its weights, and measure it.

    Args:
        experiment: checked.
        reads_data: whether the vocabularies are counted in the data; otherwise sizes that depend
            on them are shown as such.

    Raises:
        ConfigError: a component refuses its arguments, or a stated size is not the inferred one.
        DataError: the data cannot be read.
    """
    vocabularies: Vocabularies = PlaceholderVocabularies()
    lazy: Lazy[Model[Any]] = experiment.arguments["model"]
    with collecting_size_problems() as problems:
        built = _attempt(experiment.build, problems)
        if reads_data and built is not None:
            vocabularies = count_vocabularies(built, lazy.factory)
        model = _attempt(partial(_on_meta, lazy, vocabularies), problems)
    if built is not None and model is not None:
        problems += _idle_patterns(built.trainer.no_grad, model)
        problems += _metric_problems(built, model)
    if built is None or model is None or problems:
        raise ConfigError(experiment.source, problems)
    trials = _trials(lazy, model, vocabularies)
    return ModelReport(
        widths=list(_widths(trials)),
        counts=count_parameters(trials, frozen=built.trainer.no_grad),
        frozen=frozen_parameters(model),
        vocabularies={name: len(vocabularies.counted(name)) for name in vocabularies.names},
    )


def model_problems(model: Lazy[Model[Any]]) -> list[Problem]:
    """List the wrong sizes of a model, whatever else its experiment says.

    Args:
        model: checked.
    """
    with collecting_size_problems() as problems:
        _attempt(partial(_on_meta, model, PlaceholderVocabularies()), problems)
    return problems


def _trials(lazy: Lazy[Model[Any]], model: Model[Any], vocabularies: Vocabularies) -> Trials:
    if not isinstance(vocabularies, PlaceholderVocabularies):
        return Trials(model, model, {}, {})
    larger = PlaceholderVocabularies(is_larger=True)
    second = _on_meta(lazy, larger)
    growths = {name: larger.sizes[name] - size for name, size in vocabularies.sizes.items()}
    return Trials(model, second, vocabularies.sizes, growths)


def _on_meta(lazy: Lazy[Model[Any]], vocabularies: Vocabularies) -> Model[Any]:
    with torch.device("meta"), size_budget():
        return lazy.build(vocabularies=vocabularies, weights_follow=True)


def _attempt(build: Callable[[], BuiltT], problems: list[Problem]) -> BuiltT | None:
    try:
        return build()
    except BuildError as error:
        problems.append(error.problem)
    except DataError as error:
        if not error.config_path:
            raise
        problems.append(Problem(error.config_path, str(error)))
    return None


def _idle_patterns(patterns: Sequence[str], model: nn.Module) -> Iterator[Problem]:
    names = [name for name, _ in model.named_parameters()]
    for index, pattern in enumerate(patterns):
        if not any(re.search(pattern, name) for name in names):
            yield Problem(dotted("trainer.no_grad", index), no_match(pattern, names))


def _metric_problems(experiment: Experiment, model: Model[Any]) -> Iterator[Problem]:
    if problem := metric_problem(experiment.trainer.validation_metric, model):
        yield Problem("trainer.validation_metric", problem)


def _widths(trials: Trials) -> Iterator[Width]:
    others = trials.larger.modules()
    for (name, module), other in zip(trials.model.named_modules(), others, strict=True):
        input_dim = _width(trials, module, other, "input_dim")
        output_dim = _width(trials, module, other, "output_dim")
        if isinstance(module, Component) and output_dim is not None:
            yield Width(name, type(module).__name__, input_dim, output_dim)


def _width(trials: Trials, module: nn.Module, other: nn.Module, key: str) -> Amount | None:
    width = getattr(module, key, None)
    return trials.amount(width, getattr(other, key)) if isinstance(width, int) else None
