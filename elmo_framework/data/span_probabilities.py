"""Marginal probabilities of labeled spans under a distribution over sequences of tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from elmo_framework.data.annotation import Annotation
from elmo_framework.data.tagging import continuations, label_of


@dataclass(frozen=True)
class TagScores:
    """Scores of the sequences of tags of one sentence.

        p(y) ~ exp(start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_n])

    Attributes:
        emissions: of each tag at each word.
        start: of each tag as the first one.
        transitions: from the tag of the row to that of the column.
        end: of each tag as the last one.
    """

    emissions: Float[np.ndarray, "words tags"]
    start: Float[np.ndarray, " tags"]
    transitions: Float[np.ndarray, "tags tags"]
    end: Float[np.ndarray, " tags"]

    def forward(self) -> Float[np.ndarray, "words tags"]:
        """Return the log of the sum over all beginnings of a sequence that end with each tag."""
        totals = [self.start + self.emissions[0]]
        for emission in self.emissions[1:]:
            totals.append(_advance(totals[-1], self.transitions) + emission)
        return np.stack(totals)

    def backward(self) -> Float[np.ndarray, "words tags"]:
        """Return the log of the sum over all continuations of a sequence after each tag."""
        totals = [self.end]
        for emission in self.emissions[:0:-1]:
            totals.append(_advance(totals[-1] + emission, self.transitions.T))
        return np.stack(totals[::-1])


def label_probabilities(
    scores: TagScores,
    tags: Sequence[str],
    annotations: Iterable[Annotation],
    *,
    are_spans: bool = True,
    top_k: int = 1,
) -> list[dict[str, float]]:
    """Return the marginal probabilities of the labels of spans.

    It is the probability that the sentence has a span of just these words with that label, read as
    `tagging.spans` reads tags: the sum over all sequences with this span. Where tags do not mark
    spans, it is the probability of the tag at its word.

    Args:
        scores: of a sentence with words.
        tags: of which the columns are.
        annotations: the predicted spans, or words.
        are_spans: whether they are spans; see `tagging.marks_spans`.
        top_k: number of labels; the label of the annotation is the first of them, then those with
            the highest probability.
    """
    annotations = list(annotations)
    if not annotations:
        return []
    before, after = scores.forward(), scores.backward()
    normalizer = np.logaddexp.reduce(before[-1] + scores.end)
    results = []
    for each in annotations:
        if are_spans:
            names, logs = _label_logs(scores, before, after, tags, each)
        else:
            names, logs = tags, before[each.start] + after[each.start]
        ranked = np.argsort(-logs, kind="stable").tolist()
        others = [names[index] for index in ranked if names[index] != each.label]
        values = dict(zip(names, np.exp(logs - normalizer).tolist(), strict=True))
        results.append({name: values[name] for name in [each.label, *others[: top_k - 1]]})
    return results


def _label_logs(
    scores: TagScores,
    before: Float[np.ndarray, "words tags"],
    after: Float[np.ndarray, "words tags"],
    tags: Sequence[str],
    span: Annotation,
) -> tuple[Sequence[str], Float[np.ndarray, " labels"]]:
    """Return the labels of spans, and for each the log of the sum over the sequences with it.

    A label never changes inside a span, so one pass over its words is for all labels.
    """
    first, continued, labels, membership = _structure(tuple(tags))
    begins = np.where(continued, -np.inf, scores.transitions)
    inside = np.where(continued, scores.transitions, -np.inf)
    total = scores.start if span.start == 0 else _advance(before[span.start - 1], begins)
    total = np.where(first, total, -np.inf) + scores.emissions[span.start]
    for emission in scores.emissions[span.start + 1 : span.end]:
        total = _advance(total, inside) + emission
    if span.end == len(after):
        total = total + scores.end
    else:
        total = total + _advance(scores.emissions[span.end] + after[span.end], begins.T)
    return labels, np.logaddexp.reduce(np.where(membership, total, -np.inf), axis=1)


@lru_cache(maxsize=8)
def _structure(
    tags: tuple[str, ...],
) -> tuple[
    Bool[np.ndarray, " tags"],
    Bool[np.ndarray, "tags tags"],
    tuple[str, ...],
    Bool[np.ndarray, "labels tags"],
]:
    """Return the tags inside spans, where a span continues, the labels, and the tags of each."""
    of_tags = np.array([label_of(tag) for tag in tags])
    labels = tuple(dict.fromkeys(label for label in of_tags.tolist() if label))
    membership = np.array(labels)[:, None] == of_tags
    return of_tags != "", continuations(tags), labels, membership


def _advance(
    totals: Float[np.ndarray, " tags"], transitions: Float[np.ndarray, "tags tags"]
) -> Float[np.ndarray, " tags"]:
    """Return the log of the sum over the tags of rows, by the tags of columns."""
    total: Float[np.ndarray, " tags"] = np.logaddexp.reduce(totals[:, None] + transitions, axis=0)
    return total
