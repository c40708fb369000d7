"""An encoder and a decoder with attention and copying, which writes questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.config import Count, Dim, DropoutRate, Injected, Lazy
from elmo_framework.data import Vocabularies
from elmo_framework.embedders import TextEmbedder
from elmo_framework.encoders import Encoder
from elmo_framework.model import Head, ModelOutput

from .beam_search import States, beam_search
from .decoder import CopyDecoder
from .example import GeneratedQuestion, QuestionBatch, Source, Target
from .task import END, START, QuestionGenerationTask, question_vocabulary

_NUM_TAGS = 3
_NEVER_WRITTEN = 3  # padding, unknown words and the start are the first ids


@dataclass(frozen=True, slots=True)
class GeneratorOutput(ModelOutput):
    """Output of the generator for a batch.

    Attributes:
        encoded: the words of the passages; questions are written from them in `predict`.
    """

    encoded: Float[Tensor, "batch tokens dim"]


@final
@Head.register("question_generator")
class QuestionGenerator(Head[QuestionBatch]):
    """Writes a question about an answer in a passage, as by Zhao et al. (2018) in outline.

    The encoder reads the embedded words with a learned vector for their tag: the first word of the
    answer, its other words, and all others. The decoder attends to them, and copies words from the
    passage. The loss is the mean of -log p over the words and the end of a question; a word that
    can neither be written nor copied is learned as an unknown one, which is never written.

    Args:
        embedder: embeds the words of the passage.
        encoder: encodes the embedded passage.
        vocabularies: counted in the training data; `vocabulary: { max_vocab_size:
            { question_words: 5000 } }` of a config limits the words that are written without
            copying.
        tag_dim: the dimension of the vector of a tag.
        embedding_dim: the dimension of the words of questions in the decoder.
        hidden_dim: the dimension of the decoder.
        dropout: the dropout rate of the input and the output of the encoder, and in the decoder.
        beam_size: the number of hypotheses of the beam search.
        max_question_length: the maximum number of words of a question.
        length_penalty: the exponent of the length that log probabilities are divided by.
    """

    task = QuestionGenerationTask()

    def __init__(
        self,
        embedder: TextEmbedder,
        encoder: Lazy[Encoder],
        vocabularies: Injected[Vocabularies],
        tag_dim: Dim = 16,
        embedding_dim: Dim = 100,
        hidden_dim: Dim = 200,
        dropout: DropoutRate = 0.3,
        beam_size: Count = 4,
        max_question_length: Count = 30,
        length_penalty: Annotated[float, Ge(0)] = 1.0,
    ) -> None:
        super().__init__()
        self._vocabulary = question_vocabulary(vocabularies)
        self._beam_size, self._max_length = beam_size, max_question_length
        self._length_penalty = length_penalty
        self.embedder = embedder
        self.tags = nn.Embedding(_NUM_TAGS, tag_dim)
        self.dropout = nn.Dropout(dropout)
        self.encoder = encoder.build(input_dim=embedder.output_dim + tag_dim)
        self.decoder = CopyDecoder(
            len(self._vocabulary), self.encoder.output_dim, embedding_dim, hidden_dim, dropout
        )

    def forward(self, batch: QuestionBatch) -> GeneratorOutput:
        """Encode the passages, and score the words of the questions if they are known."""
        source = batch.source
        vectors = torch.cat([self.embedder(source.text), self.tags(source.tags)], dim=2)
        encoded = self.dropout(self.encoder(self.dropout(vectors), source.text.mask))
        if batch.target is None:
            return GeneratorOutput(loss=None, encoded=encoded)
        losses = self._losses(encoded, source, batch.target)
        lengths = batch.target.mask.sum(dim=1)
        return GeneratorOutput(
            loss=losses.sum() / lengths.sum(),
            example_losses=losses.sum(dim=1) / lengths,
            encoded=encoded,
        )

    def predict(self, output: GeneratorOutput, batch: QuestionBatch) -> list[GeneratedQuestion]:
        """Return the best question of the beam search for each answer."""
        source, decoder, mask = batch.source, self.decoder, batch.source.text.mask
        # `predict` runs outside autocast: with mixed precision the vectors are bfloat16.
        encoded = output.encoded.to(decoder.initial.weight.dtype)

        def step(last: Tensor, states: States) -> tuple[Tensor, States]:
            hidden, cell, context, *of_source = states
            encoded, keys, mask, ids, num_ids = of_source
            log_p, (hidden, cell, context) = decoder.step(
                self._known(last),
                (hidden, cell, context),
                encoded,
                keys,
                mask,
                ids,
                source.num_unknown,
            )
            log_p = log_p.float()
            log_p[:, :_NEVER_WRITTEN] = float("-inf")
            # Other passages of the batch have more words outside the vocabulary.
            places = torch.arange(log_p.shape[1], device=log_p.device)
            log_p = log_p.masked_fill(places >= num_ids[:, None], float("-inf"))
            return log_p, (hidden, cell, context, *of_source)

        with torch.no_grad():
            start = decoder.start(encoded, mask)
            num_ids = [len(self._vocabulary) + len(unknown) for unknown in source.unknown]
            hypotheses = beam_search(
                step,
                (
                    *start,
                    encoded,
                    decoder.keys(encoded),
                    mask,
                    source.ids,
                    torch.tensor(num_ids, device=encoded.device),
                ),
                start=self._vocabulary.id(START),
                end=self._vocabulary.id(END),
                beam_size=self._beam_size,
                max_length=self._max_length,
                length_penalty=self._length_penalty,
            )
        return [
            GeneratedQuestion(self._words(each.ids, unknown), each.log_probability)
            for each, unknown in zip(hypotheses, source.unknown, strict=True)
        ]

    def _losses(
        self, encoded: Float[Tensor, "batch tokens dim"], source: Source, target: Target
    ) -> Float[Tensor, "batch steps"]:
        """Return -log p of each word of the questions, read one by one; 0 at padding."""
        decoder, mask = self.decoder, source.text.mask
        keys, state = decoder.keys(encoded), decoder.start(encoded, mask)
        last = target.ids.new_full((len(target.ids),), self._vocabulary.id(START))
        losses = []
        for words in target.ids.unbind(dim=1):
            log_p, state = decoder.step(
                last, state, encoded, keys, mask, source.ids, source.num_unknown
            )
            losses.append(-log_p.gather(1, words[:, None]).squeeze(1))
            last = self._known(words)
        return torch.stack(losses, dim=1) * target.mask

    def _known(self, ids: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """Return ids for the embedding: a copied word outside the vocabulary is unknown."""
        unknown = self._vocabulary.unknown_id
        assert unknown is not None
        return ids.masked_fill(ids >= len(self._vocabulary), unknown)

    def _words(self, ids: tuple[int, ...], unknown: tuple[str, ...]) -> tuple[str, ...]:
        known = self._vocabulary.items
        return tuple(
            known[index] if index < len(known) else unknown[index - len(known)] for index in ids
        )
