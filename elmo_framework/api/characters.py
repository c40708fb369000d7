"""Character ids of sentences, the input of `Elmo`."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Int
from torch import Tensor

from elmo_framework.api.sentences import require_sentences
from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.text import collate_text

_INDEXER = ElmoCharacterIndexer()


def batch_to_ids(batch: Sequence[Sequence[str]]) -> Int[Tensor, "batch tokens characters"]:
    """Return the ids of the characters of tokenized sentences, 50 a word.

        batch_to_ids([["A", "sentence", "."], ["Another"]]).shape     # 2 3 50

    The boundaries of a sentence are not among them: `Elmo` adds those.

    Args:
        batch: the words of each sentence; 0 fills up the shorter ones.

    Raises:
        TypeError: a sentence is a string, or a word is not.
    """
    return collate_text(require_sentences(batch), [_INDEXER]).ids[_INDEXER.key]
