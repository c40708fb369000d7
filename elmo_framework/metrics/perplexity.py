"""How well a language model predicts text."""

from __future__ import annotations

import math


def perplexity(loss: float) -> float:
    """Return the perplexity for a mean loss in nats; infinity where a float cannot hold it."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
