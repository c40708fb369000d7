"""How well a language model predicts text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

from elmo_framework.metrics.metric import Metric


@final
class Perplexity(Metric):
    """The perplexity of a language model: `exp(L / n)` where `n` words have the loss `L`.

    Sums over words, not means over batches, so that it is exact however the text is cut.
    """

    def count(self, prediction: float, gold: int) -> Mapping[str, float]:
        """Return what some words add.

        Args:
            prediction: the sum of their negative log-likelihoods, in nats.
            gold: how many words.
        """
        return {"negative_log_likelihood": float(prediction), "num_predictions": float(gold)}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return `loss`, the mean over words, and `perplexity`."""
        num_predictions = sums.get("num_predictions", 0.0)
        if not num_predictions:
            return {"loss": 0.0, "perplexity": 0.0}
        loss = sums["negative_log_likelihood"] / num_predictions
        return {"loss": loss, "perplexity": perplexity(loss)}


def perplexity(loss: float) -> float:
    """Return the perplexity for a mean loss in nats; infinity where a float cannot hold it."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
