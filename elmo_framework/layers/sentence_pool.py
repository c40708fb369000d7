"""One vector per sentence from the vectors of its words."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Shaped
from numpy.typing import NDArray

from elmo_framework.layers.pool import Pool


def pooled_dim(dim: int, pool: Pool) -> int:
    """Return the dimension of the vectors that `pooled` returns."""
    return 2 * dim if pool == "first_last" else dim


def pooled(
    vectors: Shaped[NDArray[Any], "*rows words dim"], pool: Pool
) -> Shaped[NDArray[Any], "*rows pooled_words pooled_dim"]:
    """Return the vectors of words, or one vector for all of them, as that of one word.

    Boundaries are not among the words. The vector of a sentence without words is zeros.

    Args:
        vectors: of the words of a sentence.
        pool: `mean` and `max` over the words; `first_last`, the vector of the first word, then that
            of the last; `none` for the words themselves.
    """
    if pool == "none":
        return vectors
    if not vectors.shape[-2]:
        shape = *vectors.shape[:-2], 1, pooled_dim(vectors.shape[-1], pool)
        return np.zeros(shape, vectors.dtype)
    if pool == "first_last":
        return np.concatenate([vectors[..., :1, :], vectors[..., -1:, :]], axis=-1)
    reduce = np.mean if pool == "mean" else np.max
    return np.asarray(reduce(vectors, axis=-2, keepdims=True))
