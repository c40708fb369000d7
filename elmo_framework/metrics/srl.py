"""How many arguments of predicates are found, as the CoNLL-2005 scorer counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import label_counts, label_scores
from elmo_framework.metrics.span_f1 import SpanReader

Frame: TypeAlias = tuple[int | None, Sequence[str]]
"""Where a predicate stands, and the tags of its arguments; None for no predicate at all."""

Argument: TypeAlias = tuple[tuple[tuple[int, int], ...], str]
"""The pieces of an argument, and its label."""

_CONTINUATION = "C-"
_EXCLUDED = frozenset({"V"})


@final
class SrlEval(Metric):
    """Precision, recall and their harmonic mean over arguments, for each label and overall.

    The definition is that of `srl-eval.pl` (Carreras and Marquez 2005):

    * a span `C-X` goes on with the last argument X before it: both are one argument in several
      pieces. Without an X before it, it is an argument X itself;
    * an argument is correct when its label and all of its pieces are; `R-X` is a label of its own;
    * `V`, the predicate itself, has scores but does not count for the overall ones;
    * predictions for what is no predicate in the data are not counted, and those that are missing
      for a predicate leave all of its arguments missed.

    The scores are called `precision-LABEL`, `recall-LABEL` and `f1-measure-LABEL`, with `overall`
    for all labels but V.

    Args:
        read_spans: what finds the spans of a tagged sentence.
    """

    def __init__(self, read_spans: SpanReader) -> None:
        self._read_spans = read_spans

    def count(self, prediction: Iterable[Frame], gold: Iterable[Frame]) -> Mapping[str, float]:
        """Count the arguments of all predicates of one example."""
        predicted = dict(prediction)
        sums: Counter[str] = Counter()
        for predicate, tags in gold:
            if predicate is not None:
                found = set(arguments(self._read_spans(predicted.get(predicate, ()))))
                sums += label_counts(found, set(arguments(self._read_spans(tags))))
        return {name: float(value) for name, value in sums.items()}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores; those of labels that occur nowhere are left out."""
        return label_scores(sums, not_in_overall=_EXCLUDED)


def arguments(spans: Iterable[tuple[int, int, str]]) -> list[Argument]:
    """Join continuations to what they go on with.

    Args:
        spans: of one predicate, in order, with no two at the same word.
    """
    found: list[tuple[list[tuple[int, int]], str]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for start, end, label in spans:
        continued = label.removeprefix(_CONTINUATION)
        if continued != label and continued in latest:
            latest[continued].append((start, end))
            continue
        latest[continued] = [(start, end)]
        found.append((latest[continued], continued))
    return [(tuple(pieces), label) for pieces, label in found]
