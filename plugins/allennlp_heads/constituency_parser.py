"""A parser that labels each span of a sentence (Stern et al. 2017; Joshi et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config import Dim, Injected, Lazy
from elmo_framework.data import Vocabularies
from elmo_framework.embedders import TextEmbedder
from elmo_framework.encoders import Encoder, FeedForwardOptions
from elmo_framework.model import Head, ModelOutput

from .constituency_task import (
    IGNORED,
    NO_LABEL,
    PARTS_OF_SPEECH,
    ConstituencyTask,
    TreeBatch,
    missing_tags,
    span_places,
)
from .trees import Constituent, constituents_of


@dataclass(frozen=True)
class TagEmbeddingOptions:
    """Trained vectors of parts of speech.

    Attributes:
        embedding_dim: their dimension.
    """

    embedding_dim: Dim


@dataclass(frozen=True, slots=True)
class SpanOutput(ModelOutput):
    """Output of the parser for a batch.

    Attributes:
        logits: the score of each label of each span, in the order of `span_places`.
    """

    logits: Float[Tensor, "batch spans labels"]


class ScoredSpan(NamedTuple):
    """A span with its best label.

    Attributes:
        start: its first word, from 0.
        end: the word after its last.
        label: the id of the label.
        probability: of the label.
        of_none: the probability that the span has no label.
    """

    start: int
    end: int
    label: int
    probability: float
    of_none: float


@final
@Head.register("constituency_parser")
class ConstituencyParser(Head[TreeBatch]):
    """Labels each span by itself, and removes spans that cross others.

        s_ij = [f_j - f_(i-1); b_(j+1) - b_i],  p_ij = softmax(W g(s_ij) + c)

    where f and b are the directions of the encoder, and g is a feed-forward network. Before the
    first and behind the last word there are learned vectors. Labels of several constituents with
    the same words are one label, such as `S-VP`. Where two labeled spans cross, the one stays
    whose label, with none for the other, is more probable.

    Args:
        embedder: embeds the words.
        encoder: encodes the sentence; the halves of its output are the two directions.
        vocabularies: counted in the training data.
        feedforward: the network between the vector of a span and its scores; null for none.
        pos_tag_embedding: vectors of the parts of speech, which the encoder reads behind those of
            the words; null to read words alone. Input to predict for then needs `pos_tags`.

    Attributes:
        tag_vocabulary: the parts of speech of the training data.
    """

    task = ConstituencyTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        feedforward: FeedForwardOptions | None = None,
        pos_tag_embedding: TagEmbeddingOptions | None = None,
    ) -> None:
        super().__init__()
        self._labels = vocabularies.labels()
        self.tag_vocabulary = vocabularies.words(PARTS_OF_SPEECH)
        self.embedder = embedder
        self.pos_tag_embedding: nn.Embedding | None = None
        input_dim = embedder.output_dim
        if pos_tag_embedding is not None:
            self.task = ConstituencyTask(reads_tags=True)
            tag_dim = pos_tag_embedding.embedding_dim
            self.pos_tag_embedding = nn.Embedding(len(self.tag_vocabulary), tag_dim)
            nn.init.xavier_uniform_(self.pos_tag_embedding.weight)  # as in AllenNLP
            input_dim += tag_dim
        self.encoder = encoder.build(input_dim=input_dim)
        dim = self.encoder.output_dim
        if dim % 2:
            raise ValueError(
                f"the encoder has {dim} dimensions; two directions have an even number"
            )
        self.start_sentinel = nn.Parameter(torch.randn(dim // 2))
        self.end_sentinel = nn.Parameter(torch.randn(dim // 2))
        self.feedforward = (
            None if feedforward is None else feedforward.build(input_dim=dim, key="feedforward")
        )
        width = dim if self.feedforward is None else self.feedforward.output_dim
        self.projection = nn.Linear(width, len(self._labels))

    def forward(self, batch: TreeBatch) -> SpanOutput:
        """Score the labels of all spans."""
        mask = batch.text.mask
        spans = self._spans(self.encoder(self._embedded(batch), mask), mask)
        if self.feedforward is not None:
            spans = self.feedforward(spans)
        logits = self.projection(spans)
        if batch.labels is None:
            return SpanOutput(loss=None, logits=logits)
        losses = functional.cross_entropy(
            logits.transpose(1, 2), batch.labels, ignore_index=IGNORED, reduction="none"
        )
        # The mean over the spans of a sentence, as in AllenNLP.
        numbers = (batch.labels != IGNORED).sum(dim=1).clamp(min=1)
        each = losses.sum(dim=1) / numbers
        return SpanOutput(loss=each.mean(), example_losses=each, logits=logits)

    def _embedded(self, batch: TreeBatch) -> Float[Tensor, "batch tokens dim"]:
        """Return the vectors of the words, and of their parts of speech behind them."""
        words: Tensor = self.embedder(batch.text)
        if self.pos_tag_embedding is None:
            return words
        if batch.tags is None:
            untagged = (each for each in batch.examples if len(each.tags) != len(each.words))
            raise missing_tags(next(untagged).words)
        return torch.cat([words, self.pos_tag_embedding(batch.tags)], dim=2)

    def _spans(
        self, encoded: Float[Tensor, "batch tokens dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch spans dim"]:
        forward, backward = encoded.chunk(2, dim=2)
        num_rows, num_tokens = mask.shape
        first = self.start_sentinel.expand(num_rows, 1, -1)
        forward = torch.cat([first, forward], dim=1)  # the state before word i is at i
        # The state behind the last word is the sentinel, wherever padding begins.
        is_word = functional.pad(mask, (0, 1))[:, :, None]
        backward = torch.where(is_word, functional.pad(backward, (0, 0, 0, 1)), self.end_sentinel)
        starts, ends = (places.to(mask.device) for places in span_places(num_tokens))
        differences = (
            forward.index_select(1, ends) - forward.index_select(1, starts),
            backward.index_select(1, ends) - backward.index_select(1, starts),
        )
        return torch.cat(differences, dim=2)

    def predict(self, output: SpanOutput, batch: TreeBatch) -> list[tuple[Constituent, ...]]:
        """Return the constituents of each sentence; they do not cross."""
        probabilities = output.logits.float().softmax(dim=2)
        best, labels = (each.tolist() for each in probabilities.max(dim=2))
        none = self._labels.id(NO_LABEL)
        of_none = probabilities[:, :, none].tolist()
        places = list(zip(*map(Tensor.tolist, span_places(batch.text.mask.shape[1])), strict=True))
        trees = []
        for words, *scores in zip(batch.text.words, labels, best, of_none, strict=True):
            scored = (
                ScoredSpan(*place, *each)
                for place, *each in zip(places, *scores, strict=True)
                if place[1] <= len(words) and each[0] != none
            )
            spans = without_crossing(scored)
            trees.append(
                constituents_of({each[:2]: self._labels.items[each.label] for each in spans})
            )
        return trees


def without_crossing(spans: Iterable[ScoredSpan]) -> list[ScoredSpan]:
    """Remove spans until no two cross.

    Of two that cross, the one stays whose label is more probable, with none for the other: the
    second only if p(second) + none(first) is not less than p(first) + none(second). Pairs are
    compared in order, until a pass removes nothing.
    """
    left = list(spans)
    has_changed = True
    while has_changed:
        has_changed, index = False, 0
        while index < len(left):
            crossing = _first_crossing(left, index)
            if crossing is not None:
                first, second = left[index], left[crossing]
                keeps_first = (
                    second.probability + first.of_none < first.probability + second.of_none
                )
                del left[crossing if keeps_first else index]
                has_changed = True
            # After a removal the pass continues behind this place, as in AllenNLP.
            index += 1
    return left


def _first_crossing(spans: Sequence[ScoredSpan], index: int) -> int | None:
    one = spans[index]
    for place in range(index + 1, len(spans)):
        other = spans[place]
        if one.start < other.start < one.end < other.end:
            return place
        if other.start < one.start < other.end < one.end:
            return place
    return None
