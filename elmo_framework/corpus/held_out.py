"""Which sentences are held out: equal ones always together, whatever the order of the text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from elmo_framework.console import plural
from elmo_framework.errors import DataError

_NUM_HASHES = 2**64


def hash_limit(hashes: Iterable[NDArray[np.uint64]], held_out: float) -> int:
    """Return the number below which the hash of a sentence has to be for it to be held out.

    Args:
        hashes: of all sentences, in parts.
        held_out: a share of the different sentences when it is below 1, else how many sentences
            are held out at most: the copies of a sentence are never divided.

    Raises:
        DataError: there are too few sentences to hold so many out.
    """
    if held_out < 1:
        return int(held_out * _NUM_HASHES)
    number, total = int(held_out), 0
    lowest = np.zeros(0, np.uint64)
    for part in hashes:
        total += len(part)
        lowest = np.sort(np.concatenate([lowest, part]))[: number + 1]
    if len(lowest) <= number:
        raise DataError(
            f"{plural(number, 'sentence')} cannot be held out of {total:,}: hold out fewer, so "
            "that some are left to train on"
        )
    return int(lowest[number])
