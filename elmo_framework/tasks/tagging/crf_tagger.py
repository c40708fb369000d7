"""A tagger that decodes whole sequences of tags."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import torch
from annotated_types import Ge, Lt
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.common.component import Injected, Lazy
from elmo_framework.data.tagging import Scheme, allowed_transitions, scheme_of
from elmo_framework.data.text import Indexer
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.embedders.token_embedder import TokenEmbedder
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.model.head import Head, HeadOutput
from elmo_framework.nn.crf import ConditionalRandomField, Constraints
from elmo_framework.tasks.tagging.batch import TaggingBatch
from elmo_framework.tasks.tagging.task import TaggingTask

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaggingOutput(HeadOutput):
    """What the tagger computes for a batch.

    Attributes:
        logits: the score of each tag for each word, before the tags around it count.
    """

    logits: Float[Tensor, "batch tokens tags"]


@final
@Head.register("crf_tagger")
class CrfTagger(Head[TaggingBatch]):
    """An encoder with a conditional random field over its outputs (section 4 of the paper).

    The loss is the negative log-likelihood of the tags, summed over the sentences of a batch.

    Args:
        embedder: gives the encoder its vectors.
        encoder: reads each sentence.
        vocabularies: what was counted in the training data; its labels are the tags.
        output_embedder: gives vectors that stand after those of the encoder: ELMo at the output.
        dropout: the share of values dropped from the vectors before and after the encoder.
        include_start_end_transitions: whether each tag has a score for being first and for
            being last.
        constrain_transitions: whether only sequences are predicted that the scheme of the tags
            allows. Without a scheme, as for parts of speech, there is nothing to constrain.
        label_encoding: the scheme of the tags; told from the tags themselves when it is null.
    """

    task = TaggingTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        output_embedder: TokenEmbedder | None = None,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        include_start_end_transitions: bool = False,
        constrain_transitions: bool = True,
        label_encoding: Scheme | None = None,
    ) -> None:
        super().__init__()
        self._labels = _labels(vocabularies)
        self.embedder = embedder
        self.encoder = encoder.build(input_dim=embedder.output_dim)
        self.output_embedder = output_embedder
        self.dropout = nn.Dropout(dropout)
        output_dim = 0 if output_embedder is None else output_embedder.output_dim
        self.projection = nn.Linear(self.encoder.output_dim + output_dim, len(self._labels))
        scheme = label_encoding or scheme_of(self._labels.items)
        _log.info("the %d tags are of the scheme %s", len(self._labels), scheme)
        self.crf = ConditionalRandomField(
            len(self._labels),
            include_start_end_transitions=include_start_end_transitions,
            constraints=_constraints(self._labels, scheme) if constrain_transitions else None,
        )

    @property
    def indexers(self) -> Sequence[Indexer]:
        """What turns words into the ids that the embedders read, each once."""
        own = self.output_embedder.indexers if self.output_embedder is not None else ()
        return list({item.key: item for item in (*self.embedder.indexers, *own)}.values())

    def forward(self, batch: TaggingBatch) -> TaggingOutput:
        """Score the tags of each word, and of each sentence where they are known."""
        text = batch.text
        encoded = self.dropout(self.encoder(self.dropout(self.embedder(text)), text.mask))
        if self.output_embedder is not None:
            encoded = torch.cat([encoded, self.output_embedder(text)], dim=2)
        logits = self.projection(encoded)
        if batch.tags is None:
            return TaggingOutput(loss=None, example_losses=None, logits=logits)
        losses = -self.crf.log_likelihood(logits, batch.tags, text.mask)
        return TaggingOutput(loss=losses.sum(), example_losses=losses, logits=logits)

    def predict(self, output: TaggingOutput, batch: TaggingBatch) -> list[tuple[str, ...]]:
        """Return the best tags of each sentence."""
        best = self.crf.best_tags(output.logits, batch.text.mask).tolist()
        return [
            tuple(self._labels.items[tag] for tag in tags[: len(words)])
            for tags, words in zip(best, batch.text.words, strict=True)
        ]


def _labels(vocabularies: Vocabularies) -> Vocabulary:
    labels = vocabularies.labels()
    if not len(labels):
        raise ValueError("the training data has no tags")
    return labels


def _constraints(labels: Vocabulary, scheme: Scheme | None) -> Constraints | None:
    if scheme is None:
        return None
    transitions = allowed_transitions(labels.items, scheme)
    return Constraints(
        start=torch.tensor(transitions.start),
        inner=torch.tensor(transitions.inner),
        end=torch.tensor(transitions.end),
    )
