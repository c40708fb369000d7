"""What the trainer trains: a model, its output, and the sums that its scores are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import Indexer
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.parameter_rules import Penalty, initialize, penalties, total_penalty
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.model.task import Task

BatchT = TypeVar("BatchT")


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What a model computes for a batch; each model adds its own.

    Attributes:
        loss: what is differentiated; None without labels. Reported figures come from sums.
    """

    loss: Tensor | None


@runtime_checkable
class Indexing(Protocol):
    """A module that reads ids of words."""

    @property
    def indexers(self) -> Sequence[Indexer]:
        """What turns words into the ids."""


@runtime_checkable
class Penalized(Protocol):
    """A module that adds to the training loss."""

    def penalty(self) -> Tensor:
        """Return what is added to the training loss."""


@runtime_checkable
class Carrying(Protocol):
    """A module that carries state from one batch to the next."""

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state by name; empty before the first batch."""

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state; zeros when it is empty."""


@runtime_checkable
class Gauged(Protocol):
    """A module with figures worth watching while it trains."""

    def gauges(self) -> Mapping[str, float]:
        """Return the figures by name."""


@runtime_checkable
class Prepared(Protocol):
    """A module that can do a part of its work once, before training."""

    def prepare(self, sentences: Sequence[Sequence[str]], device: torch.device) -> None:
        """Do what can be done for sentences that will be read.

        Args:
            sentences: of all the data.
            device: where the model is.
        """


@runtime_checkable
class Covering(Protocol):
    """A module that reads vectors for some words from a file."""

    def knows(self, word: str) -> bool | None:
        """Tell whether the file has a vector for a word; None where no file was read."""


@runtime_checkable
class RowSparse(Protocol):
    """A module with a large table of which a batch touches few rows.

    Attributes:
        has_sparse_gradients: whether the gradient of the table is a sparse tensor; set by whoever
            trains.
    """

    has_sparse_gradients: bool


@dataclass(frozen=True)
class Reference:
    """Files that a model reads and that no checkpoint holds: a frozen biLM.

    Attributes:
        path: where they were read.
        digest: SHA-256 of their content.
    """

    path: Path
    digest: str


class Model(nn.Module, Registrable, ABC, Generic[BatchT]):
    """A network for one task, pretraining included.

    The last statement of a member's constructor is `self.initialize(initializer, regularizer)`.

    Args:
        initializer: fills parameters after the model is built: `[[regex, {type: ...}], ...]`. The
            first expression that is found in a parameter's name decides; other parameters keep
            what their component gives them, and so do those that are read from a file.
        regularizer: what parameters add to the training loss, in the same form: `l1` or `l2`.

    Attributes:
        task: what it solves.
    """

    task: ClassVar[Task[Any, Any]]
    _penalties: Sequence[Penalty] = ()

    def initialize(
        self, initializer: Initializers | None, regularizer: Regularizers | None
    ) -> None:
        """Fill the parameters, and note what penalizes them, as a configuration says.

        Raises:
            ConfigError: an expression is found in no parameter's name, or a parameter has a shape
                that its initializer cannot fill.
        """
        initialize(self, initializer)
        self._penalties = penalties(self, regularizer)

    @abstractmethod
    def forward(self, batch: BatchT) -> ModelOutput:
        """Compute the output, and the loss where the batch has labels."""

    @abstractmethod
    def sums(self, output: ModelOutput, batch: BatchT) -> Mapping[str, float]:
        """Return what a batch adds to the sums; figures that stand for sums over examples."""

    @abstractmethod
    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Make the scores of sums; of none at all too, so that names are known without data."""

    @property
    def indexers(self) -> Sequence[Indexer]:
        """What turns words into the ids that the modules read, each once."""
        parts = (part for _, part in self._parts() if isinstance(part, Indexing))
        return list({item.key: item for part in parts for item in part.indexers}.values())

    @contextmanager
    def fresh_state(self) -> Iterator[None]:
        """Put the state that is carried between batches aside, for an evaluation."""
        kept = self.carried_state()
        self.load_carried_state({})
        try:
            yield
        finally:
            self.load_carried_state(kept)

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state that the modules carry between batches, for a checkpoint."""
        return {
            f"{name}/{key}": value
            for name, module in self._parts()
            if isinstance(module, Carrying)
            for key, value in module.carried_state().items()
        }

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `carried_state` returned; what is missing starts from zeros."""
        for name, module in self._parts():
            if isinstance(module, Carrying):
                own = {k.partition("/")[2]: v for k, v in state.items() if k.startswith(f"{name}/")}
                module.load_carried_state(own)

    def save_extras(self, directory: Path) -> None:
        """Write what others read from a finished run, beside its weights."""

    def penalty(self) -> Tensor | None:
        """Return what the modules and the regularizer add to the training loss, if anything."""
        parts = [part.penalty() for _, part in self._parts() if isinstance(part, Penalized)]
        parts += total_penalty(self._penalties)
        return sum(parts[1:], parts[0]) if parts else None

    def gauges(self) -> dict[str, float]:
        """Return the figures of all modules, by the module's name and their own."""
        return {
            f"{name}.{key}": value
            for name, module in self._parts()
            if isinstance(module, Gauged)
            for key, value in module.gauges().items()
        }

    def references(self) -> dict[str, Reference]:
        """Return the files that the model reads beside its weights, by the module's name."""
        return {
            name: module.reference
            for name, module in self.named_modules()
            if isinstance(getattr(module, "reference", None), Reference)
        }

    def _parts(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield all modules with their names, but not the model itself, which comes first."""
        return islice(self.named_modules(), 1, None)
