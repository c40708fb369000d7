"""Data loaders: base classes, and batches of examples in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import cycle, islice
from math import ceil, inf
from typing import Any, Generic, TypeVar, final

import numpy as np
from jaxtyping import Int

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Count
from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.errors import DataError

BatchT = TypeVar("BatchT")


@dataclass(frozen=True)
class Rank:
    """One process of several, numbered from 0; it takes a part of the batches."""

    index: int = 0
    world_size: int = 1


class BatchSource(ABC, Generic[BatchT]):
    """The batches of each epoch, in an order that depends on the seed and the epoch only.

    In training every process gets the same number of batches.
    """

    @property
    @abstractmethod
    def num_batches(self) -> int:
        """The number of batches of the current epoch."""

    @property
    def num_tokens(self) -> int | None:
        """The tokens of the current epoch, over all processes; None if unknown.

        In text they are words and the ends of sentences.
        """
        return None

    @property
    @abstractmethod
    def num_left(self) -> int:
        """The number of batches of the current epoch that are still to be delivered."""

    @property
    def is_at_epoch_end(self) -> bool:
        return self.num_left == 0

    @abstractmethod
    def batches(self) -> Iterator[BatchT]:
        """Yield the rest of the current epoch; when it has ended, the next call yields the next.

        The position counts a batch as delivered before it is yielded.
        """

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return the position: JSON types and tensors."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a position that `state_dict` returned."""

    @abstractmethod
    def load_state_of_others(self, state: Mapping[str, Any], num_processes: int) -> None:
        """Continue near the position of a run with another number of processes.

        Args:
            state: the `state_dict` of its first process.
            num_processes: its number of processes.
        """


@dataclass(frozen=True)
class SourceContext:
    """Inputs of a data loader that are not in its config.

    Attributes:
        collate: makes a batch of examples (`Task.collator`).
        num_tokens: the length of an example (`Task.num_tokens`).
        seed: fixes the order.
        is_training: whether to shuffle, and to repeat the data without end where that applies.
        rank: of this process.
        label: the label of an example (`HeadTask.label`); None if examples have none or several.
    """

    collate: Callable[[Sequence[Any]], Any]
    num_tokens: Callable[[Any], int]
    seed: int
    is_training: bool
    rank: Rank = Rank()
    label: Callable[[Any], str | None] = lambda example: None


class DataLoader(Registrable, ABC):
    """Makes batches of examples."""

    default_member = "batches"

    @abstractmethod
    def source(self, examples: Iterable[Any], context: SourceContext) -> BatchSource[Any]:
        """Return the batches of some examples.

        Raises:
            DataError: the examples are too few for a batch.
        """


_BATCHES_PER_CHUNK = 50
"""Examples are sorted by length within a chunk of so many batches, so that batches stay mixed."""


@final
@DataLoader.register("batches")
class BucketDataLoader(DataLoader):
    """Batches of whole examples.

    Args:
        batch_size: the largest number of examples in a batch.
        max_tokens: the largest number of words in a batch, including padding; a longer example is
            a batch by itself.
        shuffle: whether the order of the training data changes from epoch to epoch; null means
            true. Data that is scored keeps its order.
        bucketing: whether examples of similar length come together.
        balanced: whether training reads examples of all labels equally often. An epoch has as many
            examples as the data; those of a rare label are repeated, and those of a frequent one
            are drawn anew in each epoch.
    """

    def __init__(
        self,
        batch_size: Count = 32,
        max_tokens: Count | None = None,
        shuffle: bool | None = None,
        bucketing: bool = False,
        balanced: bool = False,
    ) -> None:
        if balanced and shuffle is False:
            raise ValueError("balanced draws examples in random order; remove `shuffle: false`")
        self.balanced = balanced
        self.batch_size, self.max_tokens = batch_size, max_tokens
        self.shuffle, self.bucketing = shuffle, bucketing

    def with_batch_size(self, batch_size: int) -> BucketDataLoader:
        """Return the same loader for batches of so many examples, whatever their lengths."""
        resized = copy(self)
        resized.batch_size, resized.max_tokens = batch_size, None
        return resized

    def source(self, examples: Iterable[Any], context: SourceContext) -> BatchSource[Any]:
        in_memory = list(examples)
        if not in_memory:
            raise DataError("the data has no examples; a batch needs at least one")
        return ExampleSource(in_memory, loader=self, context=context)


@final
class ExampleSource(BatchSource[Any]):
    """Batches of examples in memory."""

    def __init__(
        self, examples: Sequence[Any], *, loader: BucketDataLoader, context: SourceContext
    ) -> None:
        self._examples, self._loader, self._context = examples, loader, context
        self._lengths = np.array([context.num_tokens(example) for example in examples])
        self._epoch, self._delivered = 0, 0
        is_balanced = loader.balanced and context.is_training
        self._by_label = _by_label(examples, context.label) if is_balanced else None
        self._plan = self._planned(0)

    @property
    def num_batches(self) -> int:
        return len(self._plan)

    @property
    def num_left(self) -> int:
        return len(self._plan) - self._delivered

    def batches(self) -> Iterator[Any]:
        if self.is_at_epoch_end:
            self._epoch, self._delivered = self._epoch + 1, 0
            self._plan = self._planned(self._epoch)
        while self._delivered < len(self._plan):
            indices = self._plan[self._delivered]
            self._delivered += 1
            yield self._context.collate([self._examples[index] for index in indices])

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self._epoch, "delivered": self._delivered}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._epoch, self._delivered = state["epoch"], state["delivered"]
        self._plan = self._planned(self._epoch)

    def load_state_of_others(self, state: Mapping[str, Any], num_processes: int) -> None:
        """Skip as many batches as all processes together had delivered.

        The epoch has ended here if and only if it had ended there.
        """
        all_of_others = ceil(len(self._joint(state["epoch"])) / num_processes)
        delivered = num_batches = len(self._planned(state["epoch"]))
        if state["delivered"] < all_of_others:
            joint = state["delivered"] * num_processes
            delivered = min(joint // self._context.rank.world_size, num_batches - 1)
        self.load_state_dict({"epoch": state["epoch"], "delivered": delivered})

    def _joint(self, epoch: int) -> list[list[int]]:
        """Return the examples of each batch of all processes."""
        generator = np.random.default_rng([self._context.seed, epoch])
        if self._by_label is None:
            order = np.arange(len(self._examples))
        else:
            order = _balanced(self._by_label, len(self._examples), generator)
        if self._shuffles:
            generator.shuffle(order)
        joint = list(self._cut(self._bucketed(order, generator)))
        if self._loader.bucketing and self._shuffles:
            generator.shuffle(joint)
        return joint

    def _planned(self, epoch: int) -> list[list[int]]:
        """Return the examples of each of this process's batches."""
        joint, rank = self._joint(epoch), self._context.rank
        if not self._context.is_training:
            return joint[rank.index :: rank.world_size]
        missing = -len(joint) % rank.world_size
        padded = list(islice(cycle(joint), len(joint) + missing))
        return padded[rank.index :: rank.world_size]

    @property
    def _shuffles(self) -> bool:
        return self._context.is_training and self._loader.shuffle is not False

    def _bucketed(self, order: Any, generator: np.random.Generator) -> list[int]:
        if not self._loader.bucketing:
            return [int(index) for index in order]
        size = _BATCHES_PER_CHUNK * self._loader.batch_size
        chunks = (order[start : start + size] for start in range(0, len(order), size))
        return [index for chunk in chunks for index in longest_first(chunk, self._lengths)]

    def _cut(self, order: Iterable[int]) -> Iterator[list[int]]:
        return padded_batches(
            order,
            lambda index: max(1, int(self._lengths[index])),
            max_tokens=self._loader.max_tokens or inf,
            batch_size=self._loader.batch_size,
        )


def _by_label(
    examples: Sequence[Any], label_of: Callable[[Any], str | None]
) -> list[Int[np.ndarray, " examples"]]:
    """Return the indices of the examples of each label, in the order of the labels.

    Raises:
        DataError: an example has no label.
    """
    indices: dict[str, list[int]] = {}
    for index, example in enumerate(examples):
        label = label_of(example)
        if label is None:
            raise DataError("data_loader.balanced: an example of the training data has no label")
        indices.setdefault(label, []).append(index)
    return [np.array(indices[label]) for label in sorted(indices)]


def _balanced(
    by_label: Sequence[Int[np.ndarray, " examples"]], size: int, generator: np.random.Generator
) -> Int[np.ndarray, " size"]:
    """Draw equally many examples of each label; none twice before all of its label are drawn."""
    quotas = np.full(len(by_label), size // len(by_label))
    quotas[generator.permutation(len(by_label))[: size % len(by_label)]] += 1
    draws = [
        generator.permuted(np.tile(own, (ceil(quota / len(own)), 1)), axis=1).ravel()[:quota]
        for own, quota in zip(by_label, quotas.tolist(), strict=True)
    ]
    return np.concatenate(draws)
