"""A conditional random field with the interface of the package pytorch-crf."""

from __future__ import annotations

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from elmo_framework.errors import allowed
from elmo_framework.nn.crf import ConditionalRandomField

_REDUCTIONS = ("none", "sum", "mean", "token_mean")


# No composition here: a subclass has the names of pytorch-crf's weights in its state_dict.
@final
class CRF(ConditionalRandomField):
    """Scores sequences of tags as a whole, and finds the best one (Lafferty et al., 2001).

        crf = CRF(num_tags, batch_first=True)
        loss = -crf(emissions, tags, mask=mask)
        crf.decode(emissions, mask=mask)     # [[0, 2, 1], [0]]

    Weights and their names (`start_transitions`, `transitions`, `end_transitions`) are those of
    pytorch-crf. A sentence may be without words: it counts for nothing.

    Args:
        num_tags: the number of tags.
        batch_first: whether dimension 0 is the batch and 1 the tokens; the other way round
            otherwise.
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        if num_tags < 1:
            raise ValueError(f"num_tags is {num_tags}; allowed: 1 or more")
        super().__init__(num_tags, include_start_end_transitions=True)
        self.num_tags, self.batch_first = num_tags, batch_first
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        tags: Int[Tensor, "batch tokens"],
        mask: Bool[Tensor, "batch tokens"] | None = None,
        reduction: Literal["none", "sum", "mean", "token_mean"] = "sum",
    ) -> Float[Tensor, ""] | Float[Tensor, " batch"]:
        """Return the log likelihood of tags; its negative is a loss.

        Args:
            emissions: a score for each tag of each token.
            tags: the tag of each token; values at padding are not read.
            mask: true at tokens, and those of a row come first; None for everywhere.
            reduction: one number a sentence (`none`), their sum, their mean, or the sum divided
                by the number of tokens (`token_mean`).
        """
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; {allowed(reduction, _REDUCTIONS)}")
        emissions, tags = self._rows_first(emissions), self._rows_first(tags)
        present = self._present(emissions, mask)
        likelihoods = self.log_likelihood(emissions, tags, present)
        match reduction:
            case "none":
                return likelihoods
            case "sum":
                return likelihoods.sum()
            case "mean":
                return likelihoods.mean()
        return likelihoods.sum() / present.sum()

    def decode(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        mask: Bool[Tensor, "batch tokens"] | None = None,
    ) -> list[list[int]]:
        """Return the best tags of each sentence (Viterbi), as many as it has tokens."""
        emissions = self._rows_first(emissions)
        present = self._present(emissions, mask)
        best, lengths = self.best_tags(emissions, present), present.sum(dim=1)
        rows = zip(best.tolist(), lengths.tolist(), strict=True)
        return [tags[:length] for tags, length in rows]

    def _rows_first(self, tensor: Tensor) -> Tensor:
        return tensor if self.batch_first else tensor.transpose(0, 1)

    def _present(self, emissions: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
        return self._rows_first(mask).bool()
