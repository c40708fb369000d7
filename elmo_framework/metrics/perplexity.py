"""Perplexity of a language model."""

from __future__ import annotations

import math


def perplexity(loss: float) -> float:
    """Return the perplexity for a mean loss in nats; infinity if it overflows."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
