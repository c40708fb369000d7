"""Whether the words that the softmax knows are those of the text."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from elmo_framework.errors import DataError
from elmo_framework.tasks.language_modeling.corpus import TokenIdCorpus

_LOG = logging.getLogger(__name__)
_MANY_UNKNOWN = 0.2
_NUM_BOUNDARIES, _NUM_SHOWN = 2, 5


def require_fit(corpus: TokenIdCorpus, is_unknown: NDArray[np.bool_], *, is_told: bool) -> None:
    """Warn of a text many of whose words the softmax does not know.

    Args:
        corpus: the text that is trained on.
        is_unknown: which of its distinct words the softmax does not know.
        is_told: whether to warn; of several processes one is enough.

    Raises:
        DataError: the softmax knows none of them.
    """
    counts = corpus.counts()[_NUM_BOUNDARIES:]
    missing = counts * is_unknown[_NUM_BOUNDARIES:]
    share = missing.sum() / max(1, counts.sum())
    if share <= _MANY_UNKNOWN or not (is_told or share == 1):
        return
    often = (-missing).argsort(kind="stable")[: min(_NUM_SHOWN, np.count_nonzero(missing))]
    shown = ", ".join(f"{corpus.words[_NUM_BOUNDARIES + word]!r}" for word in often)
    advice = "is it large enough, and of this language, with the same capitals and tokens?"
    if share == 1:
        raise DataError(
            f"the vocabulary holds none of the words of the training text ({shown}, ...); {advice}"
        )
    _LOG.warning(
        "%.0f %% of the words of the training text are not in the vocabulary, and are learned as "
        "<UNK>, most of all %s; %s",
        *(100 * share, shown, advice),
    )
