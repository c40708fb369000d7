"""Vocabulary of the softmax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.corpus.vocabulary_file import SPECIAL_WORDS, UNKNOWN_WORD
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary


def target_vocabulary(
    vocabularies: Vocabularies, *, min_count: int, max_size: int | None
) -> Vocabulary:
    """Return `<S>`, `</S>`, `<UNK>` and the words of the text, most frequent first.

    The order is that of bilm-tf's vocabulary files, and the sampled softmax relies on it.

    Args:
        vocabularies: counts of the text.
        min_count: rarer words are `<UNK>`.
        max_size: maximum number of words in addition to the three special ones.
    """
    counted = vocabularies.counted("words").items()
    words = [word for word, count in counted if count >= min_count and word not in SPECIAL_WORDS]
    return Vocabulary([*SPECIAL_WORDS, *words[:max_size]], name="words", unknown=UNKNOWN_WORD)


@final
@dataclass(frozen=True)
class TargetIndexer(Indexer):
    """Gives each word its id in the softmax; windows have a mask, so 0 is a normal id.

    Attributes:
        vocabulary: the words of the softmax.
    """

    vocabulary: Vocabulary

    @property
    def key(self) -> str:
        """The name of these ids."""
        return "targets"

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens"."""
        return self.vocabulary.ids(words)
