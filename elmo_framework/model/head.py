"""The base class of heads: models that predict something for each example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
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


T = TypeVar("T")
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
            scores = _call(name, metric.score, {}).keys()
        except (KeyError, ZeroDivisionError) as error:
            refuse_key(key, f"gives no scores for empty sums: {error!r} in `score`")
            return
        if repeated := sorted({"loss", *self.scores({})} & scores):
            message = f"gives the score {repeated[0]!r}, which the model already has"
            advice = "or let `score` name it after the parameters of the metric"
            refuse_key(key, f"{message}; remove one of the two, {advice}")
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
            for key, value in _call(name, metric.count, prediction, gold).items()
        }

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        scores = {}
        if "loss" in sums:
            scores["loss"] = sums["loss"] / max(sums["num_examples"], 1)
        for name, metric in self.metrics.items():
            scores |= _call(name, metric.score, _own(name, sums))
        return scores

    def tables(self, sums: Mapping[str, float]) -> dict[str, Table]:
        """Return the tables of the metrics that have one, by the name of the metric."""
        tables = {
            name: _call(name, metric.table, _own(name, sums))
            for name, metric in self.metrics.items()
        }
        return {name: table for name, table in tables.items() if table}


def _is_same(one: Metric, other: Metric) -> bool:
    """Return whether two metrics are of one class and have the same parameters."""
    return type(one) is type(other) and vars(one) == vars(other)


def _call(name: str, method: Callable[..., T], *arguments: Any) -> T:
    """Call a method of a metric; an error in it names the metric."""
    try:
        return method(*arguments)
    except Exception as error:
        error.add_note(f"while computing the metric {name!r} in {method.__qualname__}")
        raise


def _own(name: str, sums: Mapping[str, float]) -> dict[str, float]:
    """Return the sums of one metric, by its names."""
    return {k.partition("/")[2]: v for k, v in sums.items() if k.partition("/")[0] == name}
