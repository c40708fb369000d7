"""The plainest tagger: vectors, a linear layer, and each word's best tag."""

from __future__ import annotations

from typing import Annotated, Literal, final

import torch
from annotated_types import Ge, Lt
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from elmo_framework.common.component import Injected, Lazy
from elmo_framework.data.tagging import scheme_of
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.embedders.token_embedder import TokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.model.head import Head
from elmo_framework.nn.crf import ConditionalRandomField
from elmo_framework.tasks.tagging.batch import TaggingBatch
from elmo_framework.tasks.tagging.tagger import Tagger, TaggingOutput, tag_constraints


@final
@Head.register("simple_tagger")
class SimpleTagger(Tagger):
    """A linear layer over the vectors of the words, with or without an encoder between them.

        p(tag | word) = softmax(W h + b)

    The loss is the mean of -log p over the words of a sentence, and then over the sentences of a
    batch. With `decoder: crf` it is that of `crf_tagger`: -log p of the whole sequence of tags,
    summed over the sentences.

    Args:
        embedder: gives each word its vector.
        vocabularies: what was counted in the training data; its labels are the tags.
        encoder: reads each sentence; null for none.
        output_embedder: gives vectors that stand after those of the encoder: ELMo at the output.
        output_encoder: reads what the encoder and `output_embedder` give.
        dropout: the share of values dropped from the vectors before and after each encoder.
        decoder: whether each tag is predicted for itself (`softmax`), or all tags of a sentence
            together, as the scheme of the tags allows (`crf`).
    """

    def __init__(
        self,
        embedder: TextEmbedder,
        vocabularies: Injected[Vocabularies],
        encoder: Lazy[Encoder] | None = None,
        output_embedder: TokenEmbedder | None = None,
        output_encoder: Lazy[Encoder] | None = None,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        decoder: Literal["softmax", "crf"] = "softmax",
    ) -> None:
        super().__init__(
            embedder=embedder,
            encoder=encoder,
            vocabularies=vocabularies,
            output_embedder=output_embedder,
            output_encoder=output_encoder,
            dropout=dropout,
        )
        self.crf: ConditionalRandomField | None = None
        if decoder == "crf":
            scheme = scheme_of(self._labels.items)
            self.crf = ConditionalRandomField(
                len(self._labels), constraints=tag_constraints(self._labels, scheme)
            )

    def forward(self, batch: TaggingBatch) -> TaggingOutput:
        """Score the tags of each word."""
        logits = self._logits(batch.text)
        if batch.tags is None:
            return TaggingOutput(loss=None, example_losses=None, logits=logits)
        if self.crf is None:
            losses = _mean_losses(logits, batch.tags, batch.text.mask)
            loss = losses.sum() / batch.text.mask.any(dim=1).sum().clamp(min=1)
        else:
            losses = -self.crf.log_likelihood(logits, batch.tags, batch.text.mask)
            loss = losses.sum()
        return TaggingOutput(loss=loss, example_losses=losses, logits=logits)

    def predict(self, output: TaggingOutput, batch: TaggingBatch) -> list[tuple[str, ...]]:
        """Return the best tags of each sentence."""
        if self.crf is None:
            return self._tags(output.logits.argmax(dim=2).tolist(), batch)
        return self._tags(self.crf.best_tags(output.logits, batch.text.mask).tolist(), batch)


def _mean_losses(
    logits: Float[Tensor, "batch tokens tags"],
    tags: Int[Tensor, "batch tokens"],
    mask: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, " batch"]:
    """Return the mean of -log p over the words of each sentence; 0 for one without words."""
    losses = functional.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
    total = torch.where(mask, losses, 0.0).sum(dim=1)
    return total / mask.sum(dim=1).clamp(min=1)
