"""The base class of models."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.metrics.metric import Table
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.parameter_rules import Penalties, initialize, penalties, total_penalty
from elmo_framework.model.part import Reference, parts_of
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.model.task import Collator, Task

BatchT = TypeVar("BatchT")


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """Output of a model for a batch; members add their own fields.

    Attributes:
        loss: a scalar to differentiate; None without labels. Reported scores come from `sums`.
        example_losses: the loss of each example, "batch"; None without labels, or if it is not
            reported.
    """

    loss: Tensor | None
    example_losses: Tensor | None = field(default=None, kw_only=True)


class Model(nn.Module, Registrable, ABC, Generic[BatchT]):
    """A network for one task, pretraining included.

    Args:
        initializer: fills parameters after the model is built: `[[regex, {type: ...}], ...]`. The
            first expression that matches a part of a parameter's name applies; other parameters
            keep the values of their component, and so do those read from a file.
        regularizer: penalties of parameters in the training loss, in the same form: `l1` or `l2`.

    Attributes:
        task: the task that the model solves.
        learns_without_gradients: whether the model learns by changing its buffers in `forward`, in
            training mode, instead of by gradients. Such a model has nothing to optimize, and reads
            the training data once, in one process.
        has_static_steps: whether training steps on batches of the same form launch the same
            operations on a GPU and wait for none, so that they can be recorded.
    """

    class_attributes = ("task",)

    task: Task[Any, Any]
    learns_without_gradients: ClassVar[bool] = False
    has_static_steps: ClassVar[bool] = False
    _penalties: Penalties = ()
    _lock: ClassVar = threading.RLock()  # of the class, as no instance with one can be pickled

    def post_init(
        self, initializer: Initializers | None = None, regularizer: Regularizers | None = None
    ) -> None:
        """Apply the initializers and regularizers of a config.

        Raises:
            ConfigError: an expression matches no parameter's name, or a parameter has a shape
                that its initializer cannot fill.
        """
        initialize(self, initializer)
        self._penalties = penalties(self, regularizer)

    @abstractmethod
    def forward(self, batch: BatchT) -> ModelOutput:
        """Compute the output, with the loss if the batch has labels."""

    @abstractmethod
    def sums(self, output: ModelOutput, batch: BatchT) -> Mapping[str, float]:
        """Return what a batch adds to the sums over examples that scores are computed from."""

    @abstractmethod
    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Compute the scores from sums; empty sums give the names of all scores."""

    def tables(self, sums: Mapping[str, float]) -> Mapping[str, Table]:
        """Return tables by name, such as a confusion matrix: which labels are taken for which."""
        return {}

    def collator(self, vocabularies: Vocabularies) -> Collator:
        """Return what makes batches of examples for this model.

        Args:
            vocabularies: those that it was built with.
        """
        return self.task.collator(vocabularies, self.indexers)

    @property
    def indexers(self) -> Sequence[Indexer]:
        """The indexers of all parts, each once."""
        indexers = (indexer for _, part in parts_of(self) for indexer in part.indexers)
        return list({indexer.key: indexer for indexer in indexers}.values())

    def encoder_layers(self) -> list[Sequence[Sequence[Tensor]]]:
        """Return the trained parameters of each pretrained encoder by layer, the bottom one first.

        These are encoders that are tuned with a task; a language model is one itself.
        """
        return [layers for _, part in parts_of(self) if (layers := part.layer_parameters())]

    @contextmanager
    def fresh_state(self) -> Iterator[None]:
        """Start from zero state, for an evaluation, and restore the carried state afterwards.

        One thread at a time is inside.
        """
        with self._lock:
            state = self.carried_state()
            self.load_carried_state({})
            try:
                yield
            finally:
                self.load_carried_state(state)

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state that the parts carry between batches, as `part/name`."""
        return {
            f"{name}/{key}": value
            for name, part in parts_of(self)
            for key, value in part.carried_state().items()
        }

    def load_carried_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `carried_state` returned; missing state starts from zeros."""
        for name, part in parts_of(self):
            own = {k.partition("/")[2]: v for k, v in state.items() if k.startswith(f"{name}/")}
            part.load_carried_state(own)

    def load_bilm(self, location: str | Path) -> None:
        """Load the weights of a biLM, for `init_from`; only a model that pretrains one can.

        Args:
            location: the folder or the name of the biLM.

        Raises:
            RunError: this model does not pretrain a biLM, or the biLM has other sizes.
        """
        raise RunError(
            f"init_from: no run is in {str(location)!r}, and a {type(self).__name__} can "
            "be initialized from a run only"
        )

    def save_extras(self, directory: Path) -> None:
        """Write more files of a finished run, next to its weights; none by default."""

    def penalty(self) -> Tensor | None:
        """Return the penalties of the parts and the regularizers; None if there are none."""
        of_parts = (part.penalty() for _, part in parts_of(self))
        terms = [term for term in of_parts if term is not None]
        terms += total_penalty(self._penalties)
        return sum(terms[1:], terms[0]) if terms else None

    def monitored_values(self) -> dict[str, float]:
        """Return the monitored values of all parts, as `part.name`."""
        return {
            f"{name}.{key}": value
            for name, part in parts_of(self)
            for key, value in part.monitored_values().items()
        }

    def references(self) -> dict[str, Reference]:
        """Return the files that the model reads and no checkpoint holds, by the part's name."""
        return {name: part.reference for name, part in parts_of(self) if part.reference is not None}
