"""Tagger with a linear layer over word vectors."""

from __future__ import annotations

from typing import Annotated, Literal, final

from annotated_types import Ge, Lt

from elmo_framework.config.types import Injected, Lazy
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.metrics.metric import Metric
from elmo_framework.model.head import Head
from elmo_framework.model.initializer import Initializers
from elmo_framework.model.regularizer import Regularizers
from elmo_framework.tasks.tagging.tagger import Tagger, tag_crf


@final
@Head.register("simple_tagger")
class SimpleTagger(Tagger):
    """A linear layer over the vectors of the words, with or without an encoder between them.

        p(tag | word) = softmax(W h + b)

    The loss is the mean of -log p over the words of a sentence, and then over the sentences of a
    batch. With `decoder: crf` it is that of `crf_tagger`: -log p of the whole sequence of tags,
    summed over the sentences.

    Args:
        decoder: whether each tag is predicted independently (`softmax`), or all tags of a sentence
            jointly, within the scheme of the tags (`crf`).
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
        initializer: Initializers | None = None,
        regularizer: Regularizers | None = None,
        metrics: list[Metric] | None = None,
    ) -> None:
        super().__init__(
            embedder=embedder,
            encoder=encoder,
            vocabularies=vocabularies,
            output_embedder=output_embedder,
            output_encoder=output_encoder,
            dropout=dropout,
        )
        self.crf = tag_crf(self._labels, self._scheme) if decoder == "crf" else None
        self.initialize(initializer, regularizer, metrics)
