"""Base classes of data loaders and of the batches they make, with a seeded order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from elmo_framework.config.registry import Registrable

BatchT = TypeVar("BatchT")


@dataclass(frozen=True)
class Rank:
    """One process of several; it takes a part of the batches.

    Attributes:
        index: the number of the process, from 0.
        world_size: the number of processes.
    """

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
        """Whether the last batch of the current epoch has been delivered."""
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
    """

    collate: Callable[[Sequence[Any]], Any]
    num_tokens: Callable[[Any], int]
    seed: int
    is_training: bool
    rank: Rank = Rank()


class DataLoader(Registrable, ABC):
    """Makes batches of examples."""

    default_member = "batches"

    @abstractmethod
    def source(self, examples: Iterable[Any], context: SourceContext) -> BatchSource[Any]:
        """Return the batches of some examples.

        Raises:
            DataError: the examples are too few for a batch.
        """
