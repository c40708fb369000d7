"""Disambiguate words by the nearest mean vector of a sense."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.config.types import Injected
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.model.head import Head
from elmo_framework.model.model import ModelOutput
from elmo_framework.tasks.word_senses.example import SenseBatch, SenseTarget, lemma_and_pos
from elmo_framework.tasks.word_senses.task import WordSenseTask


@dataclass(frozen=True, slots=True)
class SenseOutput(ModelOutput):
    """Output of `nearest_sense`.

    Attributes:
        vectors: of each target: the mean of those of its words.
    """

    vectors: Float[Tensor, "targets dim"]


@final
@Head.register("nearest_sense")
class NearestSense(Head[SenseBatch]):
    """The sense whose mean vector in the training data is nearest (section 5.3 of the paper).

    The vector of a sense is the mean over its words in the training data. A word gets the sense
    of its lemma and part of speech with the highest cosine. A lemma that the training data does
    not have gets WordNet's first sense, if the reader knows it, or none. The embedder is not
    trained, and no gradient is computed: `trainer.num_epochs` must be 1.

    Args:
        embedder: word vectors: one layer of a biLM, for example.
        vocabularies: counts of the training data; its labels are the senses.
        method: `nearest`; or, to compare with, always the sense of the lemma that is most frequent
            in the training data (`most_frequent`), or WordNet's first one (`first`).
    """

    task = WordSenseTask()
    learns_without_gradients: ClassVar[bool] = True
    totals: Tensor
    counts: Tensor

    def __init__(
        self,
        embedder: TextEmbedder,
        vocabularies: Injected[Vocabularies],
        method: Literal["nearest", "most_frequent", "first"] = "nearest",
    ) -> None:
        super().__init__()
        self._senses, self._method = vocabularies.required_labels(), method
        self._candidates: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for index, sense in enumerate(self._senses.items):  # the most frequent first
            if "%" in sense:  # `elmo check` assumes other labels
                self._candidates[lemma_and_pos(sense)].append(index)
        self.embedder = embedder.requires_grad_(False)
        size = len(self._senses) if method == "nearest" else 0
        self.register_buffer("totals", torch.zeros(size, embedder.output_dim))
        self.register_buffer("counts", torch.zeros(size))

    def train(self, mode: bool = True) -> NearestSense:
        """Set the mode of the head; the embedder stays in evaluation mode, without dropout."""
        super().train(mode)
        self.embedder.eval()
        return self

    @torch.no_grad()
    def forward(self, batch: SenseBatch) -> SenseOutput:
        if self._method != "nearest":
            return SenseOutput(
                loss=batch.text.mask.new_zeros((), dtype=torch.float), vectors=self.totals
            )
        vectors = span_means(self.embedder(batch.text).float(), batch.spans)
        if self.training:
            target, sense = batch.labels.unbind(dim=1)
            self.totals.index_add_(0, sense, vectors.index_select(0, target))
            self.counts.index_add_(0, sense, self.counts.new_ones(len(sense)))
        return SenseOutput(loss=vectors.new_zeros(()), vectors=vectors)

    def predict(self, output: SenseOutput, batch: SenseBatch) -> list[tuple[str | None, ...]]:
        vectors = iter(output.vectors)
        return [
            tuple(self._sense(target, next(vectors, None)) for target in example.targets)
            for example in batch.examples
        ]

    def _sense(self, target: SenseTarget, vector: Tensor | None) -> str | None:
        candidates = self._candidates.get((target.lemma, target.pos), [])
        if self._method == "first" or not candidates:
            return target.first_sense
        if vector is None:
            return self._senses.items[candidates[0]]
        means = self.totals[candidates] / self.counts[candidates].clamp(min=1)[:, None]
        cosines = functional.cosine_similarity(means, vector[None], dim=1)
        return self._senses.items[candidates[int(cosines.argmax())]]


def span_means(
    vectors: Float[Tensor, "batch tokens dim"], spans: Tensor
) -> Float[Tensor, "targets dim"]:
    """Return the mean vector of the words of each span.

    Args:
        vectors: of all words.
        spans: row, start and end of each, "targets 3".
    """
    row, start, end = spans.unbind(dim=1)
    position = torch.arange(vectors.shape[1], device=vectors.device)
    inside = (position >= start[:, None]) & (position < end[:, None])
    weights = inside / (end - start)[:, None]
    return torch.einsum("st,std->sd", weights.to(vectors.dtype), vectors[row])
