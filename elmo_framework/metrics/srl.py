"""F1 of the arguments of predicates, as in the CoNLL-2005 scorer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from elmo_framework.data.tagging import spans
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import gold_counts, label_counts, label_scores

Argument: TypeAlias = tuple[tuple[tuple[int, int], ...], str]
"""The pieces of an argument, and its label."""

_CONTINUATION = "C-"
_EXCLUDED = frozenset({"V"})


class Proposition(NamedTuple):
    """A predicate, and a tag for each word of its sentence: a BIO tag of its arguments.

    Attributes:
        predicate: its position, from 0; None for a sentence without predicates.
        tags: as `B-ARG0`; the predicate itself is `V`, and `C-X` continues an argument X.
    """

    predicate: int | None
    tags: tuple[str, ...]


@final
@Metric.register("srl_eval")
class SrlEval(Metric):
    """Precision, recall and their harmonic mean over arguments, for each label and overall.

    The definition is that of `srl-eval.pl` (Carreras and Marquez 2005):

    * a span `C-X` continues the last argument X before it: both are one argument in several
      pieces. Without an X before it, it is an argument X itself;
    * an argument is correct if its label and all of its pieces are; `R-X` is a separate label;
    * `V`, the predicate itself, has scores but does not count for the overall ones;
    * predictions for words that are not predicates in the data are not counted; without a
      prediction for a predicate, all of its arguments are missed.

    The scores are called `precision-LABEL`, `recall-LABEL` and `f1-measure-LABEL`, with `overall`
    for all labels except V.
    """

    def count(
        self, prediction: Sequence[Proposition], gold: Sequence[Proposition]
    ) -> Mapping[str, float]:
        predicted = dict(prediction)
        sums: Counter[str] = Counter()
        for predicate, tags in gold:
            if predicate is not None:
                predicted_arguments = arguments(spans(predicted.get(predicate, ())))
                sums += label_counts(set(predicted_arguments), set(arguments(spans(tags))))
        return sums

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores; labels that do not occur have none."""
        return label_scores(sums, not_in_overall=_EXCLUDED)

    def names_of_scores(self, labels: Collection[str]) -> Collection[str]:
        return self.score(gold_counts({label for _, label in arguments(spans([*labels]))}))


def arguments(labeled: Iterable[tuple[int, int, str]]) -> list[Argument]:
    """Join continuations to the arguments that they continue.

    Args:
        labeled: the spans of one predicate, in order, without overlap.
    """
    joined: list[tuple[list[tuple[int, int]], str]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for start, end, label in labeled:
        continued = label.removeprefix(_CONTINUATION)
        if continued != label and continued in latest:
            latest[continued].append((start, end))
            continue
        latest[continued] = [(start, end)]
        joined.append((latest[continued], continued))
    return [(tuple(pieces), label) for pieces, label in joined]
