"""A conditional random field with the interface of the package pytorch-crf."""

from __future__ import annotations

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from elmo_framework.errors import allowed
from elmo_framework.nn.crf import ConditionalRandomField

_EMISSION_DIMS = 3
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
                by the number of tokens (`token_mean`), 0 without any.

        Raises:
            ValueError: unknown reduction, a tensor has another shape, or the tokens of a row do
                not come first.
        """
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; {allowed(reduction, _REDUCTIONS)}")
        emissions, present = self._read(emissions, mask)
        tags = self._rows_first(tags)
        _require_shape("tags", tags, emissions)
        likelihoods = emissions.sum(dim=(1, 2))
        if emissions.shape[1]:
            likelihoods = self.log_likelihood(emissions, tags, present)
        match reduction:
            case "none":
                return likelihoods
            case "sum":
                return likelihoods.sum()
            case "mean":
                return likelihoods.mean()
        return likelihoods.sum() / present.sum().clamp(min=1)

    def decode(
        self,
        emissions: Float[Tensor, "batch tokens tags"],
        mask: Bool[Tensor, "batch tokens"] | None = None,
    ) -> list[list[int]]:
        """Return the best tags of each sentence (Viterbi), as many as it has tokens.

        Raises:
            ValueError: see `forward`.
        """
        emissions, present = self._read(emissions, mask)
        if not emissions.shape[1]:
            return [[] for _ in emissions]
        best, lengths = self.best_tags(emissions, present), present.sum(dim=1)
        rows = zip(best.tolist(), lengths.tolist(), strict=True)
        return [tags[:length] for tags, length in rows]

    def _rows_first(self, tensor: Tensor) -> Tensor:
        return tensor if self.batch_first else tensor.transpose(0, 1)

    def _read(self, emissions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the emissions and the mask, with the batch as their first dimension."""
        if emissions.dim() != _EMISSION_DIMS or emissions.shape[2] != self.num_tags:
            raise ValueError(
                f"emissions has the shape {tuple(emissions.shape)}; expected three dimensions, "
                f"the last of them {self.num_tags} tags"
            )
        emissions = self._rows_first(emissions)
        if mask is None:
            return emissions, emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
        present = self._rows_first(mask).bool()
        _require_shape("mask", present, emissions)
        if (present[:, 1:] > present[:, :-1]).any():
            raise ValueError("mask has padding before a token; the tokens of a row come first")
        return emissions, present


def _require_shape(name: str, tensor: Tensor, emissions: Tensor) -> None:
    if tensor.shape != emissions.shape[:2]:
        raise ValueError(
            f"{name} is of {' x '.join(map(str, tensor.shape))} (batch x tokens); expected "
            f"{emissions.shape[0]} x {emissions.shape[1]}, as emissions"
        )
