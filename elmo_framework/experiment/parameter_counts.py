"""How many parameters a model has, exactly, even where that depends on words not yet counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from torch import nn

from elmo_framework.data.vocabulary import Vocabularies

Amount: TypeAlias = Counter[tuple[str, ...]]
"""A number that may depend on the sizes of vocabularies: the factor of each product of their
names. `{(): 100, ("words",): 50}` is 100 + 50 * words."""

_TIMES = " \N{MULTIPLICATION SIGN} "
_NUM_WORDS, _NUM_LABELS, _POWER = 10007, 101, 8


class PlaceholderVocabularies(Vocabularies):
    """Vocabularies before the data is read, in two forms: each is larger in the second.

    The growth is another power for each vocabulary, so that the growth of a dimension between
    two models built with the two tells which vocabularies it depends on, and how often.

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
    found: dict[str, Any] = {
        name: getattr(module, "num_frozen_parameters", 0) for name, module in model.named_modules()
    }
    return {name: number for name, number in found.items() if number}
