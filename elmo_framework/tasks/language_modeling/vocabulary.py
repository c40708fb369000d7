"""Vocabulary of the softmax, and a check that it fits the text."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS, UNKNOWN_WORD, is_listable
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus

_LOG = logging.getLogger(__name__)
_MANY_UNKNOWN = 0.2
_NUM_BOUNDARIES, _NUM_SHOWN = 2, 5


def target_vocabulary(
    vocabularies: Vocabularies, *, min_count: int, max_size: int | None
) -> Vocabulary:
    """Return `<S>`, `</S>`, `<UNK>` and the words of the text, most frequent first.

    The order is that of bilm-tf's vocabulary files, and the sampled softmax relies on it. Words
    that such a file cannot have, such as those with spaces at their ends, are `<UNK>`.

    Args:
        vocabularies: counts of the text.
        min_count: rarer words are `<UNK>`.
        max_size: maximum number of words in addition to the three special ones.
    """
    counted = vocabularies.counted("words").items()
    words = [word for word, count in counted if count >= min_count and is_listable(word)]
    return Vocabulary([*SPECIAL_WORDS, *words[:max_size]], name="words", unknown=UNKNOWN_WORD)


@final
@dataclass(frozen=True)
class TargetIndexer(Indexer):
    """Gives each word its id in the softmax; windows have a mask, so 0 is a normal id."""

    vocabulary: Vocabulary

    @property
    def key(self) -> str:
        return "targets"

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens"."""
        return self.vocabulary.ids(words)


def require_fit(corpus: TokenIdCorpus, is_unknown: NDArray[np.bool_], *, is_logged: bool) -> None:
    """Warn if many words of the text are not in the vocabulary of the softmax.

    Args:
        corpus: the training text.
        is_unknown: which of its distinct words are not in the vocabulary.
        is_logged: whether to warn; one of several processes is enough.

    Raises:
        DataError: none of them is in the vocabulary.
    """
    counts = corpus.counts()[_NUM_BOUNDARIES:]
    missing = counts * is_unknown[_NUM_BOUNDARIES:]
    unknown_rate = missing.sum() / max(1, counts.sum())
    if unknown_rate <= _MANY_UNKNOWN or not (is_logged or unknown_rate == 1):
        return
    often = (-missing).argsort(kind="stable")[: min(_NUM_SHOWN, np.count_nonzero(missing))]
    shown = ", ".join(f"{corpus.words[_NUM_BOUNDARIES + word]!r}" for word in often)
    advice = "is it large enough, and of this language, with the same capitals and tokens?"
    if unknown_rate == 1:
        raise DataError(
            f"the vocabulary holds none of the words of the training text ({shown}, ...); {advice}"
        )
    _LOG.warning(
        "%.0f %% of the words of the training text are not in the vocabulary, and are learned as "
        "<UNK>, most of all %s; %s",
        *(100 * unknown_rate, shown, advice),
    )
