from __future__ import annotations

from typing import get_args

import pytest
import torch

from elmo_framework.nn.subword_pooling import PoolingMode, SubwordPooling

IDS = torch.tensor([[3, 1, 4, 0, 0], [5, 0, 0, 0, 0], [2, 2, 1, 3, 4], [0, 0, 0, 0, 0]])


def pooling(mode: PoolingMode) -> SubwordPooling:
    torch.manual_seed(0)
    return SubwordPooling(6, 4, mode, 3).double()


@pytest.mark.parametrize("mode", get_args(PoolingMode))
def test_a_word_is_pooled_from_its_own_pieces(mode: PoolingMode) -> None:
    pool = pooling(mode)
    pooled = pool(IDS)
    assert pooled.shape == (4, pool.output_dim)
    for row, ids in zip(pooled[:3], IDS, strict=False):
        vectors = pool.embedding(ids[ids > 0])
        if mode == "gru":
            _, (ahead, back) = pool.gru(vectors[None])
            expected = torch.cat([ahead[0], back[0]])
        else:
            expected = {
                "mean": vectors.mean(0),
                "max": vectors.max(0).values,
                "first": vectors[0],
                "last": vectors[-1],
            }[mode]
        torch.testing.assert_close(row, expected)
    assert pooled[3].isfinite().all()
    torch.testing.assert_close(pool(IDS[1:2, :1]), pooled[1:2])


def test_padding_has_no_gradient() -> None:
    for mode in get_args(PoolingMode):
        pool = pooling(mode)
        pool(IDS[:3]).square().sum().backward()
        assert (pool.embedding.weight.grad[0] == 0).all()
