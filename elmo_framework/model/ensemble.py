"""Ensembles: several heads of one task that predict together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, final, get_args

from torch import nn

from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError, allowed
from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.model.head import Head
from elmo_framework.model.model import ModelOutput
from elmo_framework.model.task import Collator

Combination: TypeAlias = Literal["mean", "vote"]
"""How the predictions of an ensemble are made: of mean scores, or by agreement."""


@final
@dataclass(frozen=True, slots=True)
class EnsembleBatch:
    """The same examples, collated for each head.

    Attributes:
        members: the batch of each head, by its index.
    """

    members: Mapping[int, Any]

    @property
    def examples(self) -> Sequence[Any]:
        """The examples, in order."""
        return tuple(self.members[0].examples)

    @property
    def num_tokens(self) -> int:
        return int(self.members[0].num_tokens)

    @property
    def title(self) -> str:
        return str(self.members[0].title)


@final
@dataclass(frozen=True, slots=True)
class EnsembleOutput(ModelOutput):
    """The output of each head, without a loss."""

    outputs: Sequence[Any]


@final
class Ensemble(Head[EnsembleBatch]):
    """Heads of one task that predict together; not trained, and not part of a config.

    `mean` decodes the mean of the scores of all heads (`Head.mean_output`). `vote` takes the
    prediction of one of them: the one that agrees best with the others, which is the most frequent
    one for labels, and the consensus of minimum Bayes risk for structures (Kumar and Byrne 2004).
    The first of several alike is taken.

    Args:
        heads: two or more, or one.
        vocabularies: of each head.
        combination: `mean` or `vote`.
        agreement: the score by which two predictions are compared for `vote`, such as
            `f1-measure-overall`; empty for that of the task, which also replaces one that needs
            logits, such as `accuracy3`. Predictions that are equal agree in any case.

    Raises:
        RunError: the heads are of different tasks, have different labels, have no scores to
            average, or cannot vote.
        ValueError: the combination is unknown.
    """

    def __init__(
        self,
        heads: Sequence[Head[Any]],
        vocabularies: Sequence[Vocabularies],
        *,
        combination: Combination = "mean",
        agreement: str = "",
    ) -> None:
        super().__init__()
        if combination not in get_args(Combination):
            choices = allowed(combination, get_args(Combination))
            raise ValueError(f"unknown combination {combination!r}; {choices}")
        _require_one_task(heads)
        self._heads, self._vocabularies = tuple(heads), tuple(vocabularies)
        self._combination = combination
        self.heads = nn.ModuleList(heads)
        self.task, self.labels = heads[0].task, heads[0].labels
        if combination == "mean":
            heads[0].require_average(heads)
        else:
            heads[0].require_vote()
            self._agreement_score = _agreement_score(heads[0], agreement)

    def collator(self, vocabularies: Vocabularies) -> Collator:
        pairs = zip(self._heads, self._vocabularies, strict=True)
        return partial(_collate, [head.collator(own) for head, own in pairs])

    def forward(self, batch: EnsembleBatch) -> EnsembleOutput:
        outputs = [head(batch.members[index]) for index, head in enumerate(self._heads)]
        return EnsembleOutput(loss=None, outputs=outputs)

    def predict(self, output: EnsembleOutput, batch: EnsembleBatch) -> list[Any]:
        first = self._heads[0]
        if self._combination == "mean":
            return first.predict(first.mean_output(output.outputs, self._heads), batch.members[0])
        predictions = [
            head.predict(each, batch.members[index])
            for index, (head, each) in enumerate(zip(self._heads, output.outputs, strict=True))
        ]
        return [self._consensus(votes) for votes in zip(*predictions, strict=True)]

    def annotation_probabilities(
        self,
        output: EnsembleOutput,
        batch: EnsembleBatch,
        predictions: Sequence[Any],
        *,
        top_k: int = 1,
    ) -> list[Sequence[Mapping[str, float]]]:
        if self._combination == "vote":
            return super().annotation_probabilities(output, batch, predictions)
        first = self._heads[0]
        mean = first.mean_output(output.outputs, self._heads)
        return first.annotation_probabilities(mean, batch.members[0], predictions, top_k=top_k)

    def terms(
        self, predictions: Sequence[Any], output: ModelOutput, batch: EnsembleBatch
    ) -> list[dict[str, float]]:
        assert isinstance(output, EnsembleOutput), output
        first, own = self._heads[0], batch.members[0]
        if self._combination == "mean":
            return first.terms(predictions, first.mean_output(output.outputs, self._heads), own)
        return [first.count(*pair) for pair in zip(predictions, own.examples, strict=True)]

    @property
    def metrics(self) -> Mapping[str, Metric]:
        return self._heads[0].metrics

    def scores(self, sums: Mapping[str, float]) -> dict[str, float]:
        return self._heads[0].scores(sums)

    def tables(self, sums: Mapping[str, float]) -> dict[str, Table]:
        return self._heads[0].tables(sums)

    def _consensus(self, votes: Sequence[Any]) -> Any:
        """Return the prediction with the largest sum of agreements with all; the first of these."""
        golds = [self.task.as_gold(vote) for vote in votes]
        totals = [
            sum(self._agreement(vote, gold, other) for other in golds)
            for vote, gold in zip(votes, golds, strict=True)
        ]
        best = max(totals)
        return next(v for v, total in zip(votes, totals, strict=True) if total >= best - 1e-9)

    def _agreement(self, prediction: Any, own: Any, other: Any) -> float:
        if own == other:
            return 1.0
        sums = {
            f"{name}/{key}": value
            for name, metric in self.task.metrics.items()
            for key, value in metric.count(prediction, other).items()
        }
        return self._heads[0].scores({"num_examples": 1.0} | sums).get(self._agreement_score, 0.0)


def _agreement_score(head: Head[Any], selected_by: str) -> str:
    """Return the score that compares two predictions; empty if they must be equal to agree."""
    names = head.scores({"num_examples": 1.0})
    needs_logits = selected_by in head.scores({}) and selected_by not in names
    if selected_by and not needs_logits:
        return selected_by
    return next((name for name in head.task.agreement_scores if name in names), "")


def _collate(collators: Sequence[Collator], examples: Sequence[Any]) -> EnsembleBatch:
    return EnsembleBatch({index: collate(examples) for index, collate in enumerate(collators)})


def _require_one_task(heads: Sequence[Head[Any]]) -> None:
    first = heads[0]
    for head in heads[1:]:
        if type(head.task) is not type(first.task):
            names = type(first).__name__, type(head).__name__
            raise RunError("an ensemble of different tasks: {} and {}".format(*names))
        own, other = (set(() if h.labels is None else h.labels.items) for h in (first, head))
        if different := sorted(own ^ other):
            raise RunError(
                f"an ensemble of runs with different labels: only some have {different[0]!r}"
            )
