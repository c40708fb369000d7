from __future__ import annotations

import numpy as np
import pytest

from elmo_framework.corpus.assemble import hash_limit
from elmo_framework.errors import DataError

PARTS = [np.array([9, 3, 3], np.uint64), np.array([], np.uint64), np.array([5, 7], np.uint64)]


@pytest.mark.parametrize(("number", "held_out"), [(1, []), (2, [3, 3]), (3, [3, 3, 5]), (0, [])])
def test_held_out_number_is_a_maximum_and_keeps_copies(number: int, held_out: list[int]) -> None:
    limit = hash_limit(PARTS, number)
    assert sorted(int(h) for part in PARTS for h in part if h < limit) == held_out


def test_a_share_is_one_of_all_hashes() -> None:
    assert hash_limit([], 0.25) == 2**62


def test_all_sentences_cannot_be_held_out() -> None:
    with pytest.raises(DataError, match="cannot hold out 5 sentences of 5"):
        hash_limit(PARTS, 5)
