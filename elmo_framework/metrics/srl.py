"""F1 of the arguments of predicates, as in the CoNLL-2005 scorer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import label_counts, label_scores
from elmo_framework.metrics.span_f1 import SpanReader

Frame: TypeAlias = tuple[int | None, Sequence[str]]
"""The position of a predicate (None for no predicate), and the tags of its arguments."""

Argument: TypeAlias = tuple[tuple[tuple[int, int], ...], str]
"""The pieces of an argument, and its label."""

_CONTINUATION = "C-"
_EXCLUDED = frozenset({"V"})


@final
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

    Args:
        read_spans: returns the spans of a tagged sentence.
    """

    def __init__(self, read_spans: SpanReader) -> None:
        self._read_spans = read_spans

    def count(self, prediction: Iterable[Frame], gold: Iterable[Frame]) -> Mapping[str, float]:
        """Count the arguments of all predicates of one example."""
        predicted = dict(prediction)
        sums: Counter[str] = Counter()
        for predicate, tags in gold:
            if predicate is not None:
                spans = self._read_spans(predicted.get(predicate, ()))
                sums += label_counts(set(arguments(spans)), set(arguments(self._read_spans(tags))))
        return {name: float(value) for name, value in sums.items()}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores; labels that do not occur have none."""
        return label_scores(sums, not_in_overall=_EXCLUDED)


def arguments(spans: Iterable[tuple[int, int, str]]) -> list[Argument]:
    """Join continuations to the arguments that they continue.

    Args:
        spans: the spans of one predicate, in order, without overlap.
    """
    joined: list[tuple[list[tuple[int, int]], str]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for start, end, label in spans:
        continued = label.removeprefix(_CONTINUATION)
        if continued != label and continued in latest:
            latest[continued].append((start, end))
            continue
        latest[continued] = [(start, end)]
        joined.append((latest[continued], continued))
    return [(tuple(pieces), label) for pieces, label in joined]
