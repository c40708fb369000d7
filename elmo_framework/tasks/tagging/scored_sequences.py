"""What a temperature is fitted to for taggers with a CRF: whole sequences of tags."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from elmo_framework.metrics.calibration import ScoredLabels
from elmo_framework.nn.crf import ConditionalRandomField


@final
@dataclass(frozen=True)
class ScoredSequences(ScoredLabels):
    """The sequences of tags of a batch.

    The temperature divides the scores of sequences, and is fitted to the likelihood of whole
    sequences. The probabilities of a word are the marginal ones.

    Attributes:
        crf: scores the sequences.
        emissions: the score of each tag at each word.
        tags: the gold tags.
        mask: true for words.
    """

    crf: ConditionalRandomField
    emissions: Float[Tensor, "batch tokens tags"]
    tags: Int[Tensor, "batch tokens"]
    mask: Bool[Tensor, "batch tokens"]
    item: str = "word"

    @classmethod
    def of(
        cls,
        crf: ConditionalRandomField,
        emissions: Float[Tensor, "batch tokens tags"],
        tags: Int[Tensor, "batch tokens"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> ScoredSequences:
        """Keep the tensors of a batch on the CPU."""
        return cls(deepcopy(crf).cpu(), emissions.detach().cpu(), tags.cpu(), mask.cpu())

    @property
    def gold(self) -> Int[np.ndarray, " words"]:
        gold: np.ndarray = self.tags[self.mask].numpy()
        return gold

    @torch.no_grad()
    def scores(self, temperature: float) -> Float[np.ndarray, "words tags"]:
        marginals = self.crf.marginal_scores(self.emissions, self.mask, temperature=temperature)
        scores: np.ndarray = marginals[self.mask].double().numpy()
        return scores

    def slope(self, temperature: float) -> float:
        return self.crf.temperature_slope(
            self.emissions, self.tags, self.mask, temperature=temperature
        )
