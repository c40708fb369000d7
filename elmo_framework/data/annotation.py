"""Annotations of a text: labeled spans of words, and their places in its characters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.tokenizer import character_offsets
from elmo_framework.errors import DataError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Annotation:
    """A labeled span of the words of an example, from `start` to `end` (exclusive).

    Attributes:
        start: the first word, from 0, counted through all sentences of the example.
        end: the word after the last.
        label: of the span.
        group: the number of the predicate or the cluster that it belongs to; None if there are no
            such groups.
        is_head: whether the other spans of its group are arguments of this one; None in a group of
            equals, such as a cluster.
    """

    start: int
    end: int
    label: str
    group: int | None = None
    is_head: bool | None = None


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text of an example, and the place of each word in it.

    Attributes:
        text: as it was before it was split into words; words that no text is known of are joined
            by spaces, and sentences by line ends.
        offsets: the first character of each word and the character after its last.
    """

    text: str
    offsets: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, source: PredictionInput[Any], sentences: Sequence[Sequence[str]]) -> SourceText:
        """Find the words of an input in its raw text, if it has one.

        A tokenizer that changes words makes that impossible: then the words are joined.
        """
        words = [word for sentence in sentences for word in sentence]
        joined = "\n".join(map(" ".join, sentences))
        if (text := _raw_text(source)) is not None:
            try:
                return cls(text, tuple(character_offsets(text, words)))
            except DataError:
                if source.texts:
                    _warn_of_changes()
        return cls(joined, tuple(character_offsets(joined, words)))

    def characters(self, span: Annotation) -> tuple[int, int]:
        """Return the first character of a span and the character after its last."""
        return self.offsets[span.start][0], self.offsets[span.end - 1][1]


@dataclass(frozen=True, slots=True)
class PredictionRecord:
    """A prediction with its input, as the formats of predictions need it.

    Attributes:
        prediction: as the task knows it.
        input: that it is for.
        source: the text, and the place of each word in it.
        annotations: the spans that were predicted, in order.
        probabilities: for each annotation the probability of its label, then those of the next
            most probable labels of the same span; empty if the model has none.
    """

    prediction: Any
    input: PredictionInput[Any]
    source: SourceText
    annotations: Sequence[Annotation] = ()
    probabilities: Sequence[Mapping[str, float]] = ()


def _raw_text(source: PredictionInput[Any]) -> str | None:
    """Return the only raw text of an input, or what its file says is its text, as CoNLL-U does."""
    if len(source.texts) == 1:
        return next(iter(source.texts.values()))
    text = None if source.texts else source.fields.get("text")
    return text if isinstance(text, str) else None


@cache
def _warn_of_changes() -> None:
    _log.warning("the tokenizer changes words: offsets count in the words joined by spaces")
