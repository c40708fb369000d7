"""Score the candidate antecedents of each span; their loss, and the clusters they link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.kernels.product import linear
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.nn.pair_product import pair_products
from elmo_framework.tasks.coreference.example import Mention
from elmo_framework.tasks.coreference.mentions import Spans

# Distances 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63 and 64 or more (Lee et al. 2017, section 4).
_FIRST_OF_BIN = (1, 2, 3, 4, 5, 8, 16, 32, 64)
_SPANS_A_CHUNK = 16


class AntecedentScorer(nn.Module):
    """Scores each span with each of the spans before it (Lee et al. 2017, section 4).

        s(i, j) = s_m(i) + s_m(j) + w . FFNN([g_i; g_j; g_i * g_j; phi(i, j)])

    phi are embeddings of whether both have the same speaker, of the genre, and of their distance
    in spans. The first layer of the FFNN is computed in parts: those of g_i and g_j once per
    span, that of the products without storing them.

    Args:
        span_dim: the dimension of g.
        feedforward: the FFNN.
        feature_size: the dimension of each embedding of phi.
        max_antecedents: number of preceding spans that are candidates.
        dropout: dropout rate of phi.
        use_speakers: whether phi includes the speakers.
        genres: the genres of phi, where the embedding of an unknown one starts at 0; None for
            no genre in phi.
    """

    def __init__(
        self,
        *,
        span_dim: int,
        feedforward: FeedForwardOptions,
        feature_size: int,
        max_antecedents: int,
        dropout: float,
        use_speakers: bool,
        genres: Vocabulary | None,
    ) -> None:
        super().__init__()
        self._max_antecedents = max_antecedents
        self.distance_embedding = nn.Embedding(len(_FIRST_OF_BIN) + 1, feature_size)
        self.speaker_embedding = nn.Embedding(2, feature_size) if use_speakers else None
        self.genre_embedding = None if genres is None else _genre_embedding(genres, feature_size)
        num_features = 1 + use_speakers + (genres is not None)
        self._dims = [span_dim, span_dim, span_dim, num_features * feature_size]
        self.feedforward = feedforward.build(
            input_dim=sum(self._dims), key="antecedent_feedforward"
        )
        self.score = nn.Linear(self.feedforward.output_dim, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, spans: Spans, speakers: Int[Tensor, " spans"], genre: Int[Tensor, ""]
    ) -> Float[Tensor, "spans antecedents"]:
        """Return the scores of the candidates of each span of a document, the nearest first.

        Returns:
            in column k the score of the span k + 1 positions before; -inf if there is none.
        """
        weights = self.feedforward.first_weights(self._dims)
        of_span, of_antecedent, of_product, of_features = weights
        own = linear(spans.vectors, of_span, self.feedforward.first_bias)
        earlier = linear(spans.vectors, of_antecedent)
        scores = [spans.scores.new_zeros(0, self._max_antecedents)]
        for chunk, candidates in self._chunks(len(spans.scores)):
            hidden = pair_products(spans.vectors[chunk], spans.vectors[candidates], of_product)
            features = self._features(chunk, candidates, speakers, genre)
            hidden = hidden + own[chunk] + earlier[candidates, None] + linear(features, of_features)
            pair_scores = self.score(self.feedforward.after_product(hidden)).squeeze(2)
            pair_scores = pair_scores + spans.scores[chunk] + spans.scores[candidates, None]
            scores.append(self._nearest_first(pair_scores, chunk, candidates))
        return torch.cat(scores)

    def _chunks(self, num_spans: int) -> Iterator[tuple[slice, slice]]:
        """Yield chunks of spans, each with all candidates of its spans."""
        for start in range(0, num_spans, _SPANS_A_CHUNK):
            end = min(num_spans, start + _SPANS_A_CHUNK)
            yield slice(start, end), slice(max(0, start - self._max_antecedents), end)

    def _features(
        self,
        chunk: slice,
        candidates: slice,
        speakers: Int[Tensor, " spans"],
        genre: Int[Tensor, ""],
    ) -> Float[Tensor, "candidates chunk features"]:
        numbers = torch.arange(len(speakers), device=speakers.device)
        distances = (numbers[chunk] - numbers[candidates, None]).clamp(min=0)
        embeddings = [self.distance_embedding(_bins(distances))]
        if self.speaker_embedding is not None:
            is_same = speakers[chunk] == speakers[candidates, None]
            embeddings.append(self.speaker_embedding(is_same.long()))
        if self.genre_embedding is not None:
            embeddings.append(self.genre_embedding(genre).expand_as(embeddings[0]))
        features: Tensor = self.dropout(torch.cat(embeddings, dim=2))
        return features

    def _nearest_first(
        self, scores: Float[Tensor, "candidates chunk"], chunk: slice, candidates: slice
    ) -> Float[Tensor, "chunk antecedents"]:
        numbers = torch.arange(chunk.start, chunk.stop, device=scores.device)
        back = torch.arange(1, self._max_antecedents + 1, device=scores.device)
        antecedents = numbers[:, None] - back  # chunk antecedents
        places = (antecedents - candidates.start).clamp(min=0)
        return scores.T.gather(1, places).masked_fill(antecedents < 0, float("-inf"))


def _genre_embedding(genres: Vocabulary, dim: int) -> nn.Embedding:
    embedding = nn.Embedding(len(genres), dim)
    # If training has no unknown genre, this vector is never updated: it must not be noise.
    with torch.no_grad():
        embedding.weight[genres.unknown_id] = 0
    return embedding


def _bins(distances: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Return the number of the bin of each distance; 0 for the distance 0."""
    firsts = torch.tensor(_FIRST_OF_BIN, device=distances.device)
    return torch.bucketize(distances, firsts, right=True)


def with_dummy(
    scores: Float[Tensor, "spans antecedents"],
) -> Float[Tensor, "spans choices"]:
    """Prepend the score 0 of no antecedent to those of the candidates."""
    return F.pad(scores, (1, 0))


def antecedent_loss(
    choices: Float[Tensor, "spans choices"], clusters: Int[Tensor, " spans"]
) -> Float[Tensor, ""]:
    """Return `-sum_i log sum_{j in GOLD(i)} P(j | i)` (Lee et al. 2017, section 3).

    GOLD(i) are the candidates in the cluster of span i, or no antecedent if there are none.

    Args:
        choices: the scores of no antecedent and of the candidates, the nearest first.
        clusters: the number of the cluster of each span; 0 for a span that is not a mention.
    """
    is_gold = _gold(clusters, choices.shape[1] - 1)
    gold = choices.masked_fill(~is_gold, float("-inf"))
    return (choices.logsumexp(dim=1) - gold.logsumexp(dim=1)).sum()


def resolved(spans: Sequence[Sequence[int]], antecedents: Sequence[int]) -> Resolution:
    """Return the clusters of spans that are linked by their antecedents.

    Args:
        spans: the first and the last word of each, in the order of the document.
        antecedents: the distance in spans from each span back to its antecedent; 0 for none.
    """
    mentions = [Mention(start, end) for start, end in spans]
    clusters: list[list[Mention]] = []
    owners: dict[int, list[Mention]] = {}
    for number, back in enumerate(antecedents):
        if not back:
            continue
        antecedent = number - back
        if antecedent not in owners:
            owners[antecedent] = [mentions[antecedent]]
            clusters.append(owners[antecedent])
        owners[number] = owners[antecedent]
        owners[number].append(mentions[number])
    return Resolution(tuple(sorted(map(tuple, clusters))), tuple(mentions))


def _gold(clusters: Int[Tensor, " spans"], num_antecedents: int) -> Bool[Tensor, "spans choices"]:
    back = torch.arange(1, num_antecedents + 1, device=clusters.device)
    antecedents = torch.arange(len(clusters), device=clusters.device)[:, None] - back
    is_same = clusters[antecedents.clamp(min=0)] == clusters[:, None]
    is_gold = is_same & (antecedents >= 0) & (clusters > 0)[:, None]
    return torch.cat([~is_gold.any(dim=1, keepdim=True), is_gold], dim=1)
