"""End-to-end coreference model that ranks the antecedents of each span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, final

import torch
from annotated_types import Gt
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from elmo_framework.config.types import Count, Dim, DropoutRate, Injected, Lazy, Width
from elmo_framework.data.text import mask_of
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    concatenate,
    joined_dim,
)
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.feedforward import FeedForwardOptions
from elmo_framework.metrics.coreference import Resolution
from elmo_framework.model.head import Head
from elmo_framework.model.model import ModelOutput
from elmo_framework.tasks.coreference.antecedents import (
    AntecedentScorer,
    antecedent_loss,
    resolved,
    with_dummy,
)
from elmo_framework.tasks.coreference.example import (
    CoreferenceBatch,
    PackedWords,
    document_text,
    gold_clusters,
)
from elmo_framework.tasks.coreference.mentions import Attended, MentionRanker, Spans, Words
from elmo_framework.tasks.coreference.task import CoreferenceTask


@dataclass(frozen=True, slots=True)
class Ranking:
    """Antecedent scores of a document.

    Attributes:
        spans: the first and the last word of each selected span, in the document.
        choices: the score 0 of no antecedent, and those of the spans before it, the nearest first.
    """

    spans: Int[Tensor, "spans 2"]
    choices: Float[Tensor, "spans choices"]


@dataclass(frozen=True, slots=True)
class CoreferenceOutput(ModelOutput):
    """Output of the model for a batch: one ranking for each document."""

    rankings: tuple[Ranking, ...]


@final
@Head.register("coref")
class SpanRanker(Head[CoreferenceBatch]):
    """End-to-end coreference by ranking spans (Lee et al. 2017).

    All spans of a document are scored as mentions; each of the best is linked to a preceding
    span as its antecedent, or to none. The loss is the negative logarithm of the probability of
    all correct antecedents, summed over the spans.

    Args:
        embedder: word embeddings, for the encoder and for the heads of spans.
        encoder: encoder of the words.
        mention_feedforward: scores each span as a mention.
        antecedent_feedforward: scores pairs of spans.
        vocabularies: counts of the training data, including the genres.
        context_embedder: vectors appended to those of `embedder` for the encoder only: ELMo at
            the input.
        output_embedder: vectors appended to the output of the encoder: ELMo at the output.
        encoder_reads: the unit that the encoder reads as one sequence.
        embedder_reads: the unit that the embedders read as one sentence. With `document`, as in
            AllenNLP, ELMo sees `<S>` and `</S>` at the ends of a document alone; set its `cache` to
            `none`, as what is cached are sentences. It needs `encoder_reads: 'document'`.
        feature_size: the dimension of the embeddings of the width of a span, and of the distance,
            the speakers and the genre of a pair.
        max_span_width: maximum number of words of a mention; longer ones are never predicted.
        spans_per_word: number of spans to keep, as a ratio to the number of words.
        max_antecedents: number of preceding spans that are candidates.
        use_speakers: whether to use whether two spans have the same speaker.
        use_genre: whether to use the genre of the document.
        max_training_sentences: train on this number of consecutive sentences of longer
            documents, at a random position each time; null for all.
        lexical_dropout: dropout rate of the word embeddings.
        dropout: dropout rate of the output of the encoder, and of the embeddings of widths,
            distances, speakers and genres.
        attention_reads: what the attention over the words of a span is computed from: the output
            of the encoder, as in the paper, or of the embedder, as in AllenNLP.
        crossing_spans: whether selected spans may cross, as in AllenNLP; in the paper they may not.
    """

    task = CoreferenceTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        mention_feedforward: FeedForwardOptions,
        antecedent_feedforward: FeedForwardOptions,
        vocabularies: Injected[Vocabularies],
        context_embedder: TokenEmbedder | None = None,
        output_embedder: TokenEmbedder | None = None,
        encoder_reads: Literal["sentence", "document"] = "sentence",
        embedder_reads: Literal["sentence", "document"] = "sentence",
        feature_size: Dim = 20,
        max_span_width: Width = 10,
        spans_per_word: Annotated[float, Gt(0)] = 0.4,
        max_antecedents: Count = 250,
        use_speakers: bool = True,
        use_genre: bool = True,
        max_training_sentences: Count | None = 50,
        lexical_dropout: DropoutRate = 0.5,
        dropout: DropoutRate = 0.2,
        attention_reads: Attended = "encoder",
        crossing_spans: bool = False,
    ) -> None:
        super().__init__()
        if embedder_reads == "document" and encoder_reads != "document":
            raise ValueError("embedder_reads: 'document' needs encoder_reads: 'document'")
        self._max_training_sentences = max_training_sentences
        self._max_span_width, self._encoder_reads = max_span_width, encoder_reads
        self._embedder_reads = embedder_reads
        self.embedder, self.context_embedder = embedder, context_embedder
        self.encoder = encoder.build(input_dim=joined_dim(embedder.output_dim, context_embedder))
        self.output_embedder = output_embedder
        self.lexical_dropout, self.dropout = nn.Dropout(lexical_dropout), nn.Dropout(dropout)
        self.mentions = MentionRanker(
            embedded_dim=embedder.output_dim,
            encoded_dim=joined_dim(self.encoder.output_dim, output_embedder),
            feedforward=mention_feedforward,
            feature_size=feature_size,
            max_span_width=max_span_width,
            spans_per_word=spans_per_word,
            dropout=dropout,
            attention_reads=attention_reads,
            crossing_spans=crossing_spans,
        )
        self.antecedents = AntecedentScorer(
            span_dim=self.mentions.span_dim,
            feedforward=antecedent_feedforward,
            feature_size=feature_size,
            max_antecedents=max_antecedents,
            dropout=dropout,
            use_speakers=use_speakers,
            genres=vocabularies.words("genres") if use_genre else None,
        )

    def forward(self, batch: CoreferenceBatch) -> CoreferenceOutput:
        if self.training and self._max_training_sentences is not None:
            batch = batch.window(self._max_training_sentences)
        packed = PackedWords.of(batch)
        rankings, all_spans = [], []
        for number, words in enumerate(self._words(batch, packed)):
            spans = self.mentions(words)
            speakers = packed.speakers[number].index_select(0, spans.starts)
            scores = self.antecedents(spans, speakers, batch.genres[number])
            places = packed.numbers[number]
            ends = places[spans.starts + spans.widths]
            bounds = torch.stack([places[spans.starts], ends], dim=1)
            rankings.append(Ranking(bounds, with_dummy(scores)))
            all_spans.append(spans)
        losses = self._losses(batch, packed, rankings, all_spans)
        total = None if losses is None else losses.sum()
        return CoreferenceOutput(total, tuple(rankings), example_losses=losses)

    def predict(self, output: CoreferenceOutput, batch: CoreferenceBatch) -> list[Resolution]:
        return [
            resolved(ranking.spans.tolist(), ranking.choices.argmax(dim=1).tolist())
            for ranking in output.rankings
        ]

    def _words(self, batch: CoreferenceBatch, packed: PackedWords) -> list[Words]:
        text = batch.text
        if self._embedder_reads == "document":
            text, packed = document_text(batch, packed)
        embedded = self.lexical_dropout(self.embedder(text))
        read = concatenate(embedded, self.context_embedder, text)
        if self._encoder_reads == "sentence":
            encoded = [packed.take(self.dropout(self.encoder(read, text.mask)))]
        else:
            documents = torch.split(packed.take(read), packed.sizes)
            encoded = [self.dropout(self._encoded_documents(documents))]
        if self.output_embedder is not None:
            encoded.append(packed.take(self.output_embedder(text)))
        columns = zip(
            torch.split(packed.take(embedded), packed.sizes),
            torch.split(torch.cat(encoded, dim=1), packed.sizes),
            packed.sentences,
            packed.lengths,
            strict=True,
        )
        return [Words(*document) for document in columns]

    def _encoded_documents(
        self, documents: Sequence[Float[Tensor, "_ read_dim"]]
    ) -> Float[Tensor, "words encoded_dim"]:
        padded = pad_sequence(list(documents), batch_first=True)
        # An encoder needs at least one word, even if it is padding.
        padded = F.pad(padded, (0, 0, 0, max(0, 1 - padded.shape[1])))
        mask = mask_of([len(words) for words in documents], padded.shape[1])
        encoded: Tensor = self.encoder(padded, mask.to(padded.device, non_blocking=True))
        rows = zip(encoded, documents, strict=True)
        return torch.cat([row[: len(words)] for row, words in rows])

    def _losses(
        self,
        batch: CoreferenceBatch,
        packed: PackedWords,
        rankings: Sequence[Ranking],
        all_spans: Sequence[Spans],
    ) -> Float[Tensor, " documents"] | None:
        if batch.mentions is None:
            return None
        grid = gold_clusters(batch, batch.mentions, self._max_span_width)
        grids = torch.split(grid, packed.sizes)
        return torch.stack(
            [
                antecedent_loss(ranking.choices, gold[spans.starts, spans.widths])
                for ranking, spans, gold in zip(rankings, all_spans, grids, strict=True)
            ]
        )
