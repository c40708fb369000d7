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
_NUM_WORDS = 10007
_NUM_LABELS = (211, 233, 293, 331, 373, 409)
_NEAR = 3


class PlaceholderVocabularies(Vocabularies):
    """Vocabularies before the data is read: each of its own improbable size.

    A dimension that is such a size, give or take a few items that a component adds, is known to
    be that of the vocabulary.

    Attributes:
        sizes: the number of items by the name of the vocabulary, for those that were asked for.
    """

    def __init__(self) -> None:
        super().__init__({})
        self.sizes: dict[str, int] = {}

    def counted(self, name: str) -> Mapping[str, int]:
        """Return words, or labels that are well-formed tags; all of them frequent."""
        if name == "words":
            items: Iterable[str] = (f"w{index}" for index in range(_NUM_WORDS))
        else:
            num_labels = self.sizes.get(name) or _NUM_LABELS[len(self.sizes.keys() - {"words"})]
            types = range(num_labels // 2)
            items = ["O", *(f"{mark}-X{index}" for index in types for mark in "BI")]
        counted = dict.fromkeys(items, 1_000_000)
        self.sizes[name] = len(counted)
        return counted


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


def count_parameters(
    model: nn.Module, *, sizes: Mapping[str, int], frozen: Sequence[str] = ()
) -> list[Count]:
    """Count the parameters of a model by its parts; one that two parts share counts once.

    Args:
        model: on any device, `meta` included.
        sizes: of the vocabularies that it was built with, where they are placeholders.
        frozen: regular expressions; parameters with a matching name are not trained.
    """
    counts: dict[str, Count] = {}
    for name, parameter in model.named_parameters():
        part = name.partition(".")[0]
        is_trained = parameter.requires_grad and not any(re.search(each, name) for each in frozen)
        count = counts.setdefault(part, Count(part, Counter(), Counter()))
        amount = amount_of(parameter.shape, sizes)
        count.total.update(amount)
        count.trainable.update(amount if is_trained else {})
    return list(counts.values())


def amount_of(shape: Iterable[int], sizes: Mapping[str, int]) -> Amount:
    """Return the number of elements of a tensor, by the sizes of vocabularies that it holds."""
    total: Amount = Counter({(): 1})
    for dim in shape:
        factors = _dimension(dim, sizes)
        pairs = list(product(total.items(), factors.items()))
        total = Counter()
        for (names, factor), (more, other) in pairs:
            total[tuple(sorted((*names, *more)))] += factor * other
    return total


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


def _dimension(dim: int, sizes: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    for name, size in sizes.items():
        if abs(dim - size) <= _NEAR:
            return {(name,): 1, (): dim - size}
    return {(): dim}


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
