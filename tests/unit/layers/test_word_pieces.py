import numpy as np
import pytest
import torch

from elmo_framework.layers.word_pieces import pool_pieces
from elmo_framework.nn.overlapping_windows import windows


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("num_pieces", [0, 1, 2, 7, 8, 9, 30, 31])
def test_windows_use_each_piece_once(num_pieces: int, size: int) -> None:
    parts = list(windows(num_pieces, size))
    assert [piece for part in parts for piece in range(part.first, part.last)] == [
        *range(num_pieces)
    ]
    for part in parts:
        assert part.end - part.start == min(size, num_pieces)
        assert part.start <= part.first <= part.last <= part.end


def test_windows_keep_context_on_both_sides() -> None:
    size = 8
    for part in windows(100, size):
        assert part.first == 0 or part.first - part.start >= size // 4
        assert part.last == 100 or part.end - part.last >= size // 4


@pytest.mark.parametrize("mode", ["first", "last", "mean", "avg"])
def test_pooled_pieces_equal_numpy(mode: str) -> None:
    counts = [1, 3, 0, 2, 0]
    pieces = torch.randn(2, sum(counts), 4)
    pooled = pool_pieces(pieces, torch.tensor(counts), mode)
    start = 0
    for word, count in enumerate(counts):
        own = pieces[:, start : start + count].numpy()
        start += count
        expected = {
            "first": lambda own=own: own[:, 0],
            "last": lambda own=own: own[:, -1],
        }.get(mode, lambda own=own: own.mean(axis=1))
        wanted = expected() if count else np.zeros((2, 4))
        np.testing.assert_allclose(pooled[:, word], wanted, atol=1e-6)
