"""F1 of labeled spans, as in the CoNLL scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, final

from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.ratios import label_counts, label_scores, ratio

TagReader: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""Returns the tags of a sentence as the scorer reads them."""

SpanReader: TypeAlias = Callable[[Sequence[str]], Iterable[tuple[int, int, str]]]
"""Returns the spans of the tags of a sentence, in order: start, end and label."""


@final
class SpanF1(Metric):
    """Precision, recall and their harmonic mean over spans, for each label and overall.

        precision = correct / predicted,  recall = correct / gold,  f1 = 2 * p * r / (p + r)

    A span is correct if its words and its label are. The scores are called `precision-LABEL`,
    `recall-LABEL` and `f1-measure-LABEL`, with `overall` for all labels (a label
    of this name has no scores); `accuracy` is the fraction of words whose tag is correct.

    Args:
        read_spans: returns the spans of a tagged sentence.
        read_tags: converts the tags for `accuracy`; conlleval supports only IOB1 and BIO.
    """

    def __init__(self, read_spans: SpanReader, read_tags: TagReader = list) -> None:
        self._read_spans, self._read_tags = read_spans, read_tags

    def count(self, prediction: Sequence[str], gold: Sequence[str]) -> Mapping[str, float]:
        """Count the tags of one sentence."""
        sums = label_counts(set(self._read_spans(prediction)), set(self._read_spans(gold)))
        sums["words"] = len(gold)
        pairs = zip(self._read_tags(prediction), self._read_tags(gold), strict=True)
        sums["correct_words"] = sum(predicted == tag for predicted, tag in pairs)
        return {name: float(value) for name, value in sums.items()}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return the scores; labels that do not occur have none."""
        accuracy = ratio(sums.get("correct_words", 0.0), sums.get("words", 0.0))
        return {"accuracy": accuracy, **label_scores(sums)}
