"""Report sizes and parameter counts of the model of a config, without memory for its weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from elmo_framework.config.patterns import no_match
from elmo_framework.config.types import Component, Lazy, collecting_size_problems
from elmo_framework.console import plural
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, ConfigError, DataError, Problem, dotted, error_path
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of
from elmo_framework.model.weights import without_weights
from elmo_framework.training.evaluator import metric_problem
from elmo_framework.training.options import GradientDescent
from elmo_framework.training.parameter_groups import group_problems
from elmo_framework.training.unfreezing import unfreezing_problem

BuiltT = TypeVar("BuiltT")


class ComponentDims(NamedTuple):
    """The sizes of one component.

    Attributes:
        name: of the module in the model.
        kind: its class.
        input_dim: the dimension of its input; None if it does not declare one.
        output_dim: the dimension of its output.
    """

    name: str
    kind: str
    input_dim: int | None
    output_dim: int


class PartSize(NamedTuple):
    """The number of parameters of a part of a model, which has the name of its attribute."""

    name: str
    total: int
    trainable: int


@dataclass(frozen=True)
class ModelReport:
    """The sizes of the model of a config.

    Attributes:
        experiment: that was built to measure its model.
        dims: of its components.
        parts: the parameters of its parts.
        frozen: the parameters of frozen biLMs, which it reads and does not hold.
        vocabularies: the sizes of the vocabularies that the model was built for.
        is_counted: whether these were counted in the data; otherwise they are assumed.
    """

    experiment: Experiment = field(repr=False)
    dims: list[ComponentDims]
    parts: list[PartSize]
    frozen: Mapping[str, int]
    vocabularies: Mapping[str, int]
    is_counted: bool


def inspect_model(experiment: Lazy[Experiment], *, reads_data: bool) -> ModelReport:
    """Build a model without memory for its weights, and measure it.

    Args:
        experiment: checked.
        reads_data: whether the vocabularies are counted in the data, and the other data is read
            too; otherwise they are assumed to have `ASSUMED_WORDS` words and `ASSUMED_LABELS`
            labels.

    Raises:
        ConfigError: a component refuses its arguments, or a stated size is not the inferred one.
        DataError: the data cannot be read, or has a label that was not counted.
    """
    vocabularies: Vocabularies = AssumedVocabularies()
    lazy: Lazy[Model[Any]] = experiment.arguments["model"]
    with collecting_size_problems() as problems:
        built = _attempt(experiment.build, problems)
        if reads_data and built is not None:
            vocabularies = built.count_vocabularies()
        model = _attempt(partial(_on_meta, lazy, vocabularies), problems)
    if built is not None and model is not None:
        labels = vocabularies.counted("labels") if reads_data else {}
        problems += _trainer_problems(built.trainer, model, labels)
    if built is None or model is None or problems:
        raise ConfigError(experiment.source, problems)
    if reads_data:
        _make_batches(built, model, vocabularies)
    return ModelReport(
        experiment=built,
        dims=list(_dims(model)),
        parts=count_parameters(model, frozen=built.trainer.no_grad),
        frozen=frozen_parameters(model),
        vocabularies={name: len(vocabularies.counted(name)) for name in vocabularies.names},
        is_counted=reads_data,
    )


def _make_batches(experiment: Experiment, model: Model[Any], vocabularies: Vocabularies) -> None:
    """Make every batch of the data that training scores.

    Raises:
        DataError: the data cannot be read, or has a label that was not counted.
    """
    # Imported here because a check without data does not need it.
    from elmo_framework.experiment.assembly import Assembly

    assembly = Assembly(experiment, model, vocabularies, torch.device("meta"))
    for split in experiment.used_splits:
        if split != "train":
            with error_path(experiment.paths[split]):
                for _ in assembly.evaluation_source(experiment.examples(split)).batches():
                    pass


def model_problems(model: Lazy[Model[Any]]) -> list[Problem]:
    """List the wrong sizes of a checked model, independently of the rest of its experiment."""
    with collecting_size_problems() as problems:
        _attempt(partial(_on_meta, model, AssumedVocabularies()), problems)
    return problems


def _on_meta(lazy: Lazy[Model[Any]], vocabularies: Vocabularies) -> Model[Any]:
    with without_weights(), size_budget():
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


def _trainer_problems(
    trainer: GradientDescent, model: Model[Any], labels: Collection[str]
) -> Iterator[Problem]:
    """Yield what the `trainer` block asks for that this model does not have."""
    names = [name for name, _ in model.named_parameters()]
    for index, pattern in enumerate(trainer.no_grad):
        if not any(re.search(pattern, name) for name in names):
            yield Problem(dotted("trainer.no_grad", index), no_match(pattern, names))
    yield from group_problems(trainer.parameter_groups, names)
    if model.learns_without_gradients and trainer.num_epochs != 1:
        name = type(model).__name__
        message = f"a {name} reads the training data once; set it to 1"
        yield Problem("trainer.num_epochs", message)
    if problem := metric_problem(trainer.validation_metric, model, labels):
        yield Problem("trainer.validation_metric", problem)
    trained = [
        parameter
        for name, parameter in model.named_parameters()
        if _is_trained(name, parameter, trainer.no_grad)
    ]
    if trainer.unfreezing and (problem := unfreezing_problem(model, trained)):
        yield Problem("trainer.unfreezing", problem)


def _is_trained(name: str, parameter: nn.Parameter, frozen: Sequence[str]) -> bool:
    return parameter.requires_grad and not any(re.search(each, name) for each in frozen)


def _dims(model: nn.Module) -> Iterator[ComponentDims]:
    for name, module in model.named_modules():
        input_dim, output_dim = (getattr(module, key, None) for key in ("input_dim", "output_dim"))
        if isinstance(module, Component) and output_dim is not None:
            yield ComponentDims(name, type(module).__name__, input_dim, output_dim)


ASSUMED_WORDS, ASSUMED_LABELS = 10_000, 21
_ASSUMED_SIZES = {"words": ASSUMED_WORDS, "characters": 100}


class AssumedVocabularies(Vocabularies):
    """Vocabularies of a stated size, for a model that is built before the data is read."""

    is_assumed = True

    def __init__(self) -> None:
        super().__init__({})
        self._sizes: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The names of the vocabularies that were asked for, sorted."""
        return sorted(self._sizes)

    def counted(self, name: str) -> Mapping[str, int]:
        """Return words, or labels that are well-formed tags; all of them frequent."""
        size = self._sizes.setdefault(name, _ASSUMED_SIZES.get(name, ASSUMED_LABELS))
        tags = ["O", *(f"{mark}-X{index}" for index in range(size // 2) for mark in "BI")]
        items = (f"w{index}" for index in range(size)) if name in _ASSUMED_SIZES else tags
        return dict.fromkeys(items, 1_000_000)


def count_parameters(model: nn.Module, *, frozen: Sequence[str] = ()) -> list[PartSize]:
    """Count the parameters of a model by its parts; one that two parts share counts once.

    Args:
        model: on any device, `meta` included.
        frozen: regular expressions; parameters with a matching name are not trained.
    """
    sizes: dict[str, PartSize] = {}
    for name, parameter in model.named_parameters():
        part = name.partition(".")[0]
        _, total, trainable = sizes.get(part, PartSize(part, 0, 0))
        size = parameter.numel()
        trained_size = size if _is_trained(name, parameter, frozen) else 0
        sizes[part] = PartSize(part, total + size, trainable + trained_size)
    return list(sizes.values())


def frozen_parameters(model: nn.Module) -> dict[str, int]:
    """Return the sizes of what a model reads and does not hold, by the name of the reader."""
    numbers = {name: part.num_frozen_parameters for name, part in parts_of(model)}
    return {name: number for name, number in numbers.items() if number}


_MOST_TENSORS = 5000
"""More than ten times what the largest model of the papers has; they take about a second."""

_MOST_NUMBERS = 2**40
"""4 TB in float32."""


@contextmanager
def size_budget() -> Iterator[None]:
    """Refuse a model of more parameters than any machine holds, or that takes minutes to build.

    Raises:
        ValueError: in the constructor that goes beyond the limit, which a config path is added to.
    """
    num_tensors = num_numbers = 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal num_tensors, num_numbers
        if parameter is None or isinstance(parameter, nn.UninitializedParameter):
            return
        num_tensors, num_numbers = num_tensors + 1, num_numbers + parameter.numel()
        if num_tensors > _MOST_TENSORS:
            raise ValueError(f"the model has more than {plural(_MOST_TENSORS, 'weight tensor')}")
        if num_numbers > _MOST_NUMBERS:
            raise ValueError(f"the model has more than {plural(_MOST_NUMBERS, 'parameter')}")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
