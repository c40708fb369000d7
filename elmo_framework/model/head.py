"""The base class of heads: models that predict something for each example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmo_framework.config.registry import registered_name
from elmo_framework.config.types import refuse_key
from elmo_framework.data.batch import Batch
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.errors import RunError
from elmo_framework.metrics.calibration import ScoredItems, ScoredLabels
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.metrics.ratios import ratio
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

    Attributes:
        labels: those that its logits score; None if it scores something else.
        temperature: divides the scores of labels, or of sequences of tags, so that probabilities
            are calibrated (Guo et al. 2017); None if they are not.
        fitted_threshold: the probability above which a label is predicted, for heads that predict
            any number of labels; None if it is that of the config.
    """

    task: HeadTask[Any, Any]
    labels: Vocabulary | None = None
    temperature: float | None = None
    fitted_threshold: float | None = None
    _metrics: Mapping[str, Metric] | None = None

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
        own = metrics or []
        for index, metric in enumerate(own):
            if not _is_metric_of(self.task, metric):
                self._check_added(metric, index)
            self._metrics = self.all_metrics(own[: index + 1])

    @classmethod
    def all_metrics(cls, added: Sequence[Metric]) -> dict[str, Metric]:
        """Return the metrics of the task and those that a config adds, by name.

        The name is the prefix of their sums: the registered one, with an index if that is taken.
        """
        metrics = dict(cls.task.metrics)
        for index, metric in enumerate(added):
            if not _is_metric_of(cls.task, metric):
                name = registered_name(metric)
                metrics[f"{name}_{index}" if name in metrics else name] = metric
        return metrics

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the task and of the config by name, which is the prefix of their sums."""
        return self.task.metrics if self._metrics is None else self._metrics

    def _check_added(self, metric: Metric, index: int) -> None:
        """Check a metric of the config against those before it."""
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

    @abstractmethod
    def predict(self, output: Any, batch: BatchT) -> list[Any]:
        """Return one prediction per example, without tensors."""

    def label_scores(self, output: Any, batch: BatchT) -> Float[Tensor, "batch ... labels"]:
        """Return scores of the labels of each example, or of each word, with gradients.

        Their softmax is the probability of each label.

        Raises:
            RunError: the head gives labels no probabilities.
        """
        raise RunError(
            f"a {type(self).__name__} gives no label a probability; classifiers of texts, "
            "classifiers of pairs, and taggers do"
        )

    def probabilities(self, output: Any, batch: BatchT) -> Float[Tensor, "batch ... labels"]:
        """Return the probabilities of the labels, calibrated if there is a `temperature`."""
        return (self.label_scores(output, batch).float() / (self.temperature or 1.0)).softmax(-1)

    def scored_labels(self, output: Any, batch: BatchT) -> ScoredLabels:
        """Return what a temperature is fitted to: the scores and the gold labels of a batch.

        Raises:
            RunError: as of `label_scores`.
        """
        labeled: Any = batch
        scores, gold, item = self.label_scores(output, batch), labeled.labels, "example"
        if scores.dim() == 3:
            mask = labeled.text.mask
            scores, gold, item = scores[mask], gold[mask], "word"
        return ScoredItems(scores.double().cpu().numpy(), gold.cpu().numpy(), item)

    def annotation_probabilities(
        self, output: Any, batch: BatchT, predictions: Sequence[Any], *, top_k: int = 1
    ) -> list[Sequence[Mapping[str, float]]]:
        """Return the probabilities of the annotations of each prediction; none by default.

        Args:
            output: of the batch.
            batch: of the predictions.
            predictions: what `predict` returned for this output.
            top_k: number of labels for each annotation: its own, then the most probable others.
        """
        return [() for _ in predictions]

    def require_average(self, heads: Sequence[Head[Any]]) -> None:
        """Check that `average` can be called.

        Raises:
            RunError: the heads have no scores to average, or those of different kinds.
        """
        if any(type(head).mean_output is Head.mean_output for head in (self, *heads)):
            raise RunError(
                f"a {type(self).__name__} has no scores to average; combine the runs by vote"
            )

    def require_vote(self) -> None:
        """Check that predictions can be combined by agreement.

        Raises:
            RunError: they cannot, as those of two heads are never equal.
        """

    def mean_output(self, outputs: Sequence[Any], heads: Sequence[Head[Any]]) -> Any:
        """Return an output from which `predict` makes the predictions of an ensemble.

        A mean of logits is the logarithm of the geometric mean of the probabilities, up to a
        constant. Labels are in the order of this head.

        Args:
            outputs: for the same batch.
            heads: that made them; of one task, with equal sets of labels.

        Raises:
            TypeError: this head has no scores to average; see `require_average`.
        """
        raise TypeError(f"a {type(self).__name__} has no scores to average")

    def sums(self, output: ModelOutput, batch: BatchT) -> Mapping[str, float]:
        return total(self.terms(self.predict(output, batch), output, batch), output)

    def terms(
        self, predictions: Sequence[Any], output: ModelOutput, batch: BatchT
    ) -> list[dict[str, float]]:
        """Return what each example adds to the sums: `count`, and what the output shows.

        Args:
            predictions: what `predict` returned for this output.
            output: of the batch.
            batch: with labels.
        """
        pairs = zip(predictions, batch.examples, strict=True)
        terms = [self.count(prediction, example) for prediction, example in pairs]
        if output.example_losses is not None:
            for each, loss in zip(terms, output.example_losses.tolist(), strict=True):
                each["loss"] = loss
        return terms

    def count(self, prediction: Any, example: Any) -> dict[str, float]:
        """Return what one prediction adds to the sums, as `metric/name`."""
        gold = self.task.gold(example)
        return {"num_examples": 1.0} | {
            f"{name}/{key}": value
            for name, metric in self.metrics.items()
            for key, value in _call(name, metric.count, prediction, gold).items()
        }

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        return self.scores_of(sums, self.metrics)

    @classmethod
    def scores_of(
        cls, sums: Mapping[str, float], metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        """Compute the scores from sums without a model, for results that were saved.

        Args:
            sums: of `terms`; numbers, or arrays for as many results at the same time.
            metrics: those of `all_metrics`.
        """
        scores = {}
        if "loss" in sums:
            scores["loss"] = ratio(sums["loss"], sums["num_examples"])
        for name, metric in metrics.items():
            scores |= _call(name, metric.score, _own(name, sums))
        return scores

    def tables(self, sums: Mapping[str, float]) -> dict[str, Table]:
        """Return the tables of the metrics that have one, by the name of the metric."""
        tables = {
            name: _call(name, metric.table, _own(name, sums))
            for name, metric in self.metrics.items()
        }
        return {name: table for name, table in tables.items() if table}


def mean_logits(
    outputs: Sequence[LogitsOutput], heads: Sequence[Head[Any]]
) -> Float[Tensor, "... labels"]:
    """Return the mean of the logits of heads, in the order of the labels of the first."""
    orders = label_orders(heads)
    logits = [
        output.logits.index_select(-1, order.to(output.logits.device))
        for output, order in zip(outputs, orders, strict=True)
    ]
    return mean(logits)


def label_orders(heads: Sequence[Head[Any]]) -> list[Int[Tensor, " labels"]]:
    """Return, for each head, the ids of the labels of the first head."""
    vocabularies = [head.labels for head in heads if head.labels is not None]
    items = vocabularies[0].items
    return [torch.tensor([own.id(item) for item in items]) for own in vocabularies]


def mean(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors of one shape; of equal tensors exactly that."""
    return torch.stack([*tensors]).double().mean(dim=0).to(tensors[0].dtype)


def total(terms: Iterable[Mapping[str, float]], output: ModelOutput) -> dict[str, float]:
    """Return the sums of a batch: of the terms of its examples, by name.

    The loss is added up in the precision of the model, as in earlier versions; it differs from the
    sum of the terms by rounding.
    """
    sums: dict[str, float] = {}
    for each in terms:
        for name, value in each.items():
            sums[name] = sums.get(name, 0.0) + value
    if output.example_losses is not None:
        sums["loss"] = float(output.example_losses.sum())
    return sums


def _is_metric_of(task: HeadTask[Any, Any], metric: Metric) -> bool:
    return any(_is_same(metric, each) for each in task.metrics.values())


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
