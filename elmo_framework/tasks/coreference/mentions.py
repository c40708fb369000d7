"""Score spans as mentions, and prune them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.kernels.product import linear
from elmo_framework.nn.spans import (
    SpanWindows,
    best_spans,
    non_crossing_spans,
    num_spans,
    span_attention,
    weighted_windows,
)

Attended: TypeAlias = Literal["encoder", "embedder"]


class Words(NamedTuple):
    """The words of a document.

    Attributes:
        embedded: their vectors before the encoder.
        encoded: those after it.
        sentences: the index of the sentence of each word.
        lengths: number of words of each sentence.
    """

    embedded: Float[Tensor, "words embedded_dim"]
    encoded: Float[Tensor, "words encoded_dim"]
    sentences: Int[Tensor, " words"]
    lengths: Sequence[int]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a document, ordered by their first and their last word.

    Attributes:
        starts: the first word of each span.
        widths: its number of words minus one.
        scores: its score as a mention.
        vectors: its representation g.
    """

    starts: Int[Tensor, " spans"]
    widths: Int[Tensor, " spans"]
    scores: Float[Tensor, " spans"]
    vectors: Float[Tensor, "spans span_dim"]


class MentionRanker(nn.Module):
    """Scores all spans of a document and keeps the best (Lee et al. 2017, sections 4 and 5).

        g = [x*_start; x*_end; x^; phi(width)],  x^ = sum_t a_t x_t,  s_m = w . FFNN(g)

    x are the vectors of words before the encoder, x* those after it, and a is the softmax of
    `w_a . x*`, or of `w_a . x`, over the words of the span. The first layer of the FFNN is computed
    per word, and its products are combined for the spans: g is built only for the selected spans.

    Args:
        embedded_dim: the dimension of the vectors before the encoder.
        encoded_dim: the dimension of those after it.
        feedforward: the FFNN.
        feature_size: the dimension of the embedding of a span's width.
        max_span_width: maximum number of words of a span.
        spans_per_word: number of spans to keep, as a ratio to the number of words.
        dropout: dropout rate of the embeddings of widths.
        attention_reads: whether a is computed from x*, of the encoder, or x, of the embedder.
        crossing_spans: whether selected spans may cross.
    """

    def __init__(
        self,
        *,
        embedded_dim: int,
        encoded_dim: int,
        feedforward: FeedForwardOptions,
        feature_size: int,
        max_span_width: int,
        spans_per_word: float,
        dropout: float,
        attention_reads: Attended = "encoder",
        crossing_spans: bool = False,
    ) -> None:
        super().__init__()
        self._max_width, self._spans_per_word = max_span_width, spans_per_word
        self._attention_reads, self._crossing_spans = attention_reads, crossing_spans
        self._dims = [encoded_dim, encoded_dim, embedded_dim, feature_size]
        self.span_dim = sum(self._dims)
        self.attention = nn.Linear(encoded_dim if attention_reads == "encoder" else embedded_dim, 1)
        self.width_embedding = nn.Embedding(max_span_width, feature_size)
        self.feedforward = feedforward.build(input_dim=self.span_dim, key="mention_feedforward")
        self.score = nn.Linear(self.feedforward.output_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Words) -> Spans:
        """Return the selected spans; unless `crossing_spans` is set, no two of them cross."""
        windows = SpanWindows.of(words.sentences, self._max_width)
        attended = words.encoded if self._attention_reads == "encoder" else words.embedded
        attention = span_attention(self.attention(attended).squeeze(1), windows)
        features = self.dropout(self.width_embedding.weight.expand(len(words.sentences), -1, -1))
        scores = self._scores(words, windows, attention, features).flatten()
        inside = scores.detach().masked_fill(~windows.inside.flatten(), float("-inf"))
        numbers = self._selected(inside, words.lengths)
        starts = numbers.div(self._max_width, rounding_mode="floor")
        widths = numbers.remainder(self._max_width)
        vectors = [
            words.encoded.index_select(0, starts),
            words.encoded.index_select(0, starts + widths),
            weighted_windows(
                words.embedded,
                windows.positions[starts],
                attention.flatten(0, 1).index_select(0, numbers)[:, None],
            ).squeeze(1),
            features.flatten(0, 1).index_select(0, numbers),
        ]
        return Spans(starts, widths, scores.index_select(0, numbers), torch.cat(vectors, dim=1))

    def _scores(
        self,
        words: Words,
        windows: SpanWindows,
        attention: Float[Tensor, "words width width"],
        features: Float[Tensor, "words width feature"],
    ) -> Float[Tensor, "words width"]:
        of_start, of_end, of_head, of_width = self.feedforward.first_weights(self._dims)
        starts = linear(words.encoded, of_start, self.feedforward.first_bias)
        ends = F.embedding(windows.positions, linear(words.encoded, of_end))
        heads = weighted_windows(linear(words.embedded, of_head), windows.positions, attention)
        widths = linear(features, of_width)
        hidden = self.feedforward.after_product(starts[:, None] + ends + heads + widths)
        scores: Tensor = self.score(hidden)
        return scores.squeeze(2)

    def _selected(
        self, scores: Float[Tensor, " all_spans"], lengths: Sequence[int]
    ) -> Int[Tensor, " spans"]:
        """Return the numbers of the selected spans: `start * max_span_width + width`.

        Args:
            scores: -inf for a span that is not inside of a sentence.
            lengths: number of words of each sentence.
        """
        num_candidates = num_spans(lengths, self._max_width)
        limit = min(max(1, int(self._spans_per_word * sum(lengths))), num_candidates)
        if self._crossing_spans:
            return best_spans(scores, limit)
        ranked = scores.argsort(descending=True, stable=True).cpu().numpy()[:num_candidates]
        starts = ranked // self._max_width
        ends = starts + ranked % self._max_width
        selected = ranked[non_crossing_spans(starts.tolist(), ends.tolist(), limit)]
        return torch.from_numpy(np.sort(selected)).to(scores.device, non_blocking=True)
