"""Report sizes and parameter counts of the model of a config, without memory for its weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, TypeAlias, TypeVar

import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from elmo_framework.config.patterns import no_match
from elmo_framework.config.types import Component, Lazy, collecting_size_problems
from elmo_framework.console import plural
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import BuildError, ConfigError, DataError, Problem, dotted
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of
from elmo_framework.training.evaluator import metric_problem

BuiltT = TypeVar("BuiltT")


@dataclass(frozen=True)
class Width:
    """The sizes of one component.

    Attributes:
        name: of the module in the model.
        kind: its class.
        input_dim: the width of its input; None if it does not declare one.
        output_dim: the width that it gives.
    """

    name: str
    kind: str
    input_dim: Amount | None
    output_dim: Amount


@dataclass(frozen=True)
class ModelReport:
    """The sizes of the model of a config.

    Attributes:
        experiment: that was built to measure its model.
        widths: of its components.
        counts: of the parameters of its parts.
        frozen: the parameters of frozen biLMs, which it reads and does not hold.
        vocabularies: the sizes of the vocabularies, where the data was read.
    """

    experiment: Experiment = field(repr=False)
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
            vocabularies = built.count_vocabularies()
        model = _attempt(partial(_on_meta, lazy, vocabularies), problems)
    if built is not None and model is not None:
        problems += _idle_patterns(built.trainer.no_grad, model)
        problems += _metric_problems(built, model)
    if built is None or model is None or problems:
        raise ConfigError(experiment.source, problems)
    trials = _trials(lazy, model, vocabularies)
    return ModelReport(
        experiment=built,
        widths=list(_widths(trials)),
        counts=count_parameters(trials, frozen=built.trainer.no_grad),
        frozen=frozen_parameters(model),
        vocabularies={name: len(vocabularies.counted(name)) for name in vocabularies.names},
    )


def model_problems(model: Lazy[Model[Any]]) -> list[Problem]:
    """List the wrong sizes of a model, independently of the rest of its experiment.

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


Amount: TypeAlias = Counter[tuple[str, ...]]
"""A number that may depend on the sizes of vocabularies: the factor of each product of their
names. `{(): 100, ("words",): 50}` is 100 + 50 * words."""

_TIMES = " \N{MULTIPLICATION SIGN} "
_NUM_WORDS, _NUM_LABELS, _POWER = 10007, 101, 8


class PlaceholderVocabularies(Vocabularies):
    """Vocabularies before the data is read, in two forms: each is larger in the second.

    The growth is another power for each vocabulary, so that the growth of a dimension between
    two models built with the two shows which vocabularies it depends on, and how often.

    Args:
        is_larger: whether this is the second form.

    Attributes:
        sizes: the number of items by the name of the vocabulary, for those that were asked for.
    """

    def __init__(self, *, is_larger: bool = False) -> None:
        super().__init__({})
        self.sizes: dict[str, int] = {}
        self._is_larger = is_larger

    def counted(self, name: str) -> Mapping[str, int]:
        """Return words, or labels that are well-formed tags; all of them frequent."""
        size = self.sizes.get(name) or self._new_size(name)
        self.sizes[name] = size
        types = range(size // 2)
        tags = ["O", *(f"{mark}-X{index}" for index in types for mark in "BI")]
        items = (f"w{index}" for index in range(size)) if name == "words" else tags
        return dict.fromkeys(items, 1_000_000)

    def _new_size(self, name: str) -> int:
        """Return an odd size, which that many tags can have: O, and two for each type."""
        growth = 2 * _POWER ** len(self.sizes) if self._is_larger else 0
        return (_NUM_WORDS if name == "words" else _NUM_LABELS) + growth


@dataclass(frozen=True)
class Trials:
    """A model built with each of the two forms of `PlaceholderVocabularies`.

    Attributes:
        model: the first, on any device, `meta` included.
        larger: the second; with real data the first again.
        sizes: of the placeholders of the first; none with real data.
        growths: how much larger those of the second are.
    """

    model: nn.Module
    larger: nn.Module
    sizes: Mapping[str, int]
    growths: Mapping[str, int]

    def amount(self, dim: int, larger: int) -> Amount:
        """Return a dimension, given in both models, as vocabularies' sizes and a number."""
        amount: Amount = Counter({(): dim})
        growth = larger - dim
        for name, unit in sorted(self.growths.items(), key=lambda pair: -pair[1]):
            times, growth = divmod(growth, unit)
            if times:
                amount.update({(name,): times, (): -times * self.sizes[name]})
        return amount


@dataclass(frozen=True)
class Count:
    """The parameters of one part of a model.

    Attributes:
        name: of the attribute that holds it.
        total: how many there are.
        trainable: how many of them are trained.
    """

    name: str
    total: Amount
    trainable: Amount


def count_parameters(trials: Trials, *, frozen: Sequence[str] = ()) -> list[Count]:
    """Count the parameters of a model by its parts; one that two parts share counts once.

    Args:
        trials: the model.
        frozen: regular expressions; parameters with a matching name are not trained.
    """
    counts: dict[str, Count] = {}
    others = trials.larger.parameters()
    for (name, parameter), other in zip(trials.model.named_parameters(), others, strict=True):
        part = name.partition(".")[0]
        is_trained = parameter.requires_grad and not any(re.search(each, name) for each in frozen)
        amount = _product(map(trials.amount, parameter.shape, other.shape))
        count = counts.setdefault(part, Count(part, Counter(), Counter()))
        count.total.update(amount)
        count.trainable.update(amount if is_trained else {})
    return list(counts.values())


def total_of(amounts: Iterable[Amount]) -> Amount:
    """Add amounts up."""
    total: Amount = Counter()
    for amount in amounts:
        total.update(amount)
    return total


def show_amount(amount: Amount) -> str:
    """Write an amount for people, as 1,200 + 50 * words."""
    terms = " + ".join(_terms(amount)) or "0"
    return terms.replace("+ -", "- ")


def amount_as_json(amount: Amount) -> int | str:
    """Write an amount as a number, or as a string where it depends on vocabularies."""
    is_number = not any(names and factor for names, factor in amount.items())
    return amount[()] if is_number else show_amount(amount)


def _product(factors: Iterable[Amount]) -> Amount:
    result: Amount = Counter({(): 1})
    for factor in factors:
        pairs = list(product(result.items(), factor.items()))
        result = Counter()
        for (names, number), (more, other) in pairs:
            result[tuple(sorted((*names, *more)))] += number * other
    return result


def _terms(amount: Amount) -> Iterator[str]:
    for names, factor in sorted(amount.items()):
        if factor:
            number = [f"{factor:,}"] if factor != 1 or not names else []
            yield _TIMES.join([*number, *names])


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
