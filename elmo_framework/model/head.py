"""The base class of heads: models that predict something for each example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor

from elmo_framework.config.registry import registered_name
from elmo_framework.config.types import refuse_key
from elmo_framework.data.batch import Batch
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.model import Model, ModelOutput
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.model.task import HeadTask


@dataclass(frozen=True, slots=True)
class LogitsOutput(ModelOutput):
    """Output of a head that scores labels.

    Attributes:
        logits: the score of each label, of each example or of each word.
    """

    logits: Float[Tensor, "... labels"]


class ExampleBatch(Batch, Protocol):
    """A batch with its examples."""

    @property
    def examples(self) -> Sequence[Any]:
        """The examples, in order."""


BatchT = TypeVar("BatchT", bound=ExampleBatch)


class Head(Model[BatchT], Generic[BatchT]):
    """A model whose predictions are scored by the metrics of its task, and those of its config.

    Its scores are `loss`, the mean over examples, and those of the metrics.

    Args:
        metrics: metrics to compute in addition to those of the task: `['confusion', 'mcc']`.
    """

    task: ClassVar[HeadTask[Any, Any]]
    _added: Mapping[str, Metric] = {}

    def post_init(
        self,
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
        metrics: list[Metric] | None = None,
    ) -> None:
        """Apply the initializers and regularizers of a config, and add its metrics.

        A metric that the task has already, with the same parameters, is not added.

        Raises:
            ConfigError: as of `Model.post_init`.
            ValueError: two metrics give the same score, or one has no scores for empty sums.
        """
        super().post_init(initializer, regularizer)
        for index, metric in enumerate(metrics or ()):
            if not any(_is_same(metric, each) for each in self.task.metrics.values()):
                self._add(metric, index)

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the task and of the config by name, which is the prefix of their sums."""
        return {**self.task.metrics, **self._added}

    def _add(self, metric: Metric, index: int) -> None:
        """Add a metric under its registered name; with its index if that is taken."""
        key, name = f"metrics[{index}]", registered_name(metric)
        try:
            scores = metric.score({}).keys()
        except (KeyError, ZeroDivisionError) as error:
            refuse_key(key, f"gives no scores for empty sums: {error!r} in `score`")
            return
        if any(_is_same(metric, each) for each in self._added.values()):
            refuse_key(key, "is listed twice; remove one of the two")
        elif repeated := sorted({"loss", *self.scores({})} & scores):
            refuse_key(key, f"gives the score {repeated[0]!r}, which the model already has")
        name = f"{name}_{index}" if name in self.metrics else name
        self._added = {**self._added, name: metric}

    @abstractmethod
    def predict(self, output: Any, batch: BatchT) -> list[Any]:
        """Return one prediction per example, without tensors."""

    def sums(self, output: ModelOutput, batch: BatchT) -> Mapping[str, float]:
        total: dict[str, float] = {}
        for prediction, example in zip(self.predict(output, batch), batch.examples, strict=True):
            for name, value in self.count(prediction, example).items():
                total[name] = total.get(name, 0.0) + value
        if output.example_losses is not None:
            total["loss"] = float(output.example_losses.sum())
        return total

    def count(self, prediction: Any, example: Any) -> dict[str, float]:
        """Return what one prediction adds to the sums, as `metric/name`."""
        gold = self.task.gold(example)
        return {"num_examples": 1.0} | {
            f"{name}/{key}": value
            for name, metric in self.metrics.items()
            for key, value in metric.count(prediction, gold).items()
        }

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        scores = {}
        if "loss" in sums:
            scores["loss"] = sums["loss"] / max(sums["num_examples"], 1)
        for name, metric in self.metrics.items():
            scores |= metric.score(_own(name, sums))
        return scores

    def tables(self, sums: Mapping[str, float]) -> dict[str, Table]:
        """Return the tables of the metrics that have one, by the name of the metric."""
        tables = {name: metric.table(_own(name, sums)) for name, metric in self.metrics.items()}
        return {name: table for name, table in tables.items() if table}


def _is_same(one: Metric, other: Metric) -> bool:
    """Return whether two metrics are of one class and give the same scores."""
    return type(one) is type(other) and one.score({}).keys() == other.score({}).keys()


def _own(name: str, sums: Mapping[str, float]) -> dict[str, float]:
    """Return the sums of one metric, by its names."""
    return {k.partition("/")[2]: v for k, v in sums.items() if k.partition("/")[0] == name}
