"""The senses of nearest neighbors (Table 4 of the paper) as a task without training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

import torch
from annotated_types import Gt, Le
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.data.formats.records import Record
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.errors import DataError, RunError
from elmo_framework.metrics.metric import Metric
from elmo_framework.metrics.word_senses import Neighborhood, NeighborPurity
from elmo_framework.model.head import Head
from elmo_framework.model.model import ModelOutput
from elmo_framework.model.task import HeadTask
from elmo_framework.tasks.word_senses.example import (
    SenseBatch,
    SenseSentence,
    lemma_and_pos,
    sense_batch,
)
from elmo_framework.tasks.word_senses.nearest_sense import SenseOutput, span_means
from elmo_framework.tasks.word_senses.task import read_target

# Equal vectors may differ by rounding, so their cosines too.
_TIE = 1e-5


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The occurrences of a lemma.

    Attributes:
        lemma: with its part of speech, as in `bank NOUN`.
        sentences: each with one target.
    """

    lemma: str
    sentences: tuple[SenseSentence, ...]


@dataclass(frozen=True, slots=True)
class OccurrencesBatch:
    """The occurrences of several lemmas.

    Attributes:
        occurrences: the sentences of all of them.
        examples: the lemmas, in order.
    """

    occurrences: SenseBatch
    examples: tuple[Occurrences, ...]

    @property
    def num_tokens(self) -> int:
        return self.occurrences.num_tokens

    @property
    def title(self) -> str:
        return f"{self.examples[0].lemma!r} and {len(self.examples) - 1} more"


@final
class NeighborTask(HeadTask[Occurrences, OccurrencesBatch]):
    """Finds the nearest occurrences of each occurrence of a lemma; evaluated by their senses.

    A prediction is a neighborhood for each occurrence.
    """

    example_type = Occurrences
    metrics: ClassVar[Mapping[str, Metric]] = {"neighbor_purity": NeighborPurity()}
    input_keys = ("lemma", "occurrences")

    def count(self, examples: Iterable[Occurrences]) -> Counts:
        words: Counter[str] = Counter()
        for example in examples:
            for sentence in example.sentences:
                words.update(sentence.words)
        return {"words": words}

    def collate(
        self,
        examples: Sequence[Occurrences],
        vocabularies: Vocabularies,
        indexers: Sequence[Indexer],
    ) -> OccurrencesBatch:
        sentences = [sentence for example in examples for sentence in example.sentences]
        batch = sense_batch(sentences, vocabularies.labels(), indexers)
        return OccurrencesBatch(batch, tuple(examples))

    def sentences(self, example: Occurrences) -> Iterable[Sequence[str]]:
        return (sentence.words for sentence in example.sentences)

    def sampling_unit(self, example: Occurrences) -> str:
        """Return the lemma."""
        return example.lemma

    def gold(self, example: Occurrences) -> tuple[str, ...]:
        senses = [sentence.targets[0].senses for sentence in example.sentences]
        if any(each is None for each in senses):
            raise DataError(f"occurrences without senses cannot be scored: {example.lemma!r}")
        return tuple((each or ("",))[0] for each in senses)

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> Occurrences:
        """Make an example of `lemma` and `occurrences`, each with `sentence`, `start` and `end`."""
        record = Record(inputs)
        lemma = record.text("lemma")
        occurrences = [
            _occurrence(each, lemma, tokenizer) for each in record.records("occurrences")
        ]
        if len(occurrences) < 2:
            raise DataError("'occurrences' needs two or more sentences")
        return Occurrences(lemma, tuple(occurrences))

    def to_json(self, prediction: Sequence[Neighborhood], example: Occurrences) -> dict[str, Any]:
        return {
            "lemma": example.lemma,
            "neighbors": [
                sorted(near, key=lambda each: (-near[each], each)) for near in prediction
            ],
        }


def _occurrence(record: Record, lemma: str, tokenizer: Tokenizer) -> SenseSentence:
    words, target = record.words("sentence", tokenizer), read_target(record, lemma=lemma, pos="")
    with record.located():
        return SenseSentence(words, (target,))


@final
@Head.register("sense_neighbors")
class SenseNeighbors(Head[OccurrencesBatch]):
    """The nearest occurrences of the same lemma, by the cosine of their vectors; not trained.

    Occurrences with equal cosines share the places that are left. So the purity of vectors that do
    not depend on the sentence, such as GloVe's, has no luck in it.

    Args:
        embedder: word vectors: one layer of a biLM, for example.
        num_neighbors: number of nearest occurrences.
    """

    task = NeighborTask()
    learns_without_gradients: ClassVar[bool] = True

    def __init__(
        self, embedder: TextEmbedder, num_neighbors: Annotated[int, Gt(0), Le(1000)] = 10
    ) -> None:
        super().__init__()
        self.embedder = embedder.requires_grad_(False)
        self._num_neighbors = num_neighbors

    def require_average(self, heads: Sequence[Head[Any]]) -> None:
        self.require_vote()

    def require_vote(self) -> None:
        raise RunError("the neighbors of several runs cannot be combined; leave out --ensemble")

    @torch.no_grad()
    def forward(self, batch: OccurrencesBatch) -> ModelOutput:
        text, spans = batch.occurrences.text, batch.occurrences.spans
        loss = torch.zeros((), device=spans.device)
        if self.training:
            return ModelOutput(loss=loss)
        return SenseOutput(loss=loss, vectors=span_means(self.embedder(text).float(), spans))

    def predict(
        self, output: SenseOutput, batch: OccurrencesBatch
    ) -> list[tuple[Neighborhood, ...]]:
        sizes = [len(example.sentences) for example in batch.examples]
        of_lemmas = torch.split(output.vectors, sizes)
        return [neighborhoods(vectors, self._num_neighbors) for vectors in of_lemmas]


def neighborhoods(
    vectors: Float[Tensor, "occurrences dim"], num_neighbors: int
) -> tuple[Neighborhood, ...]:
    """Return the nearest other rows of each row, by cosine.

    Args:
        vectors: two or more.
        num_neighbors: number of neighbors; all other rows if there are fewer.
    """
    unit = functional.normalize(vectors, dim=1)
    cosines = (unit @ unit.T).fill_diagonal_(-torch.inf)
    size = min(num_neighbors, len(vectors) - 1)
    limits = cosines.topk(size, dim=1).values[:, -1:]
    is_nearer = cosines > limits + _TIE
    is_tied = (cosines - limits).abs() <= _TIE
    places_left = size - is_nearer.sum(dim=1, keepdim=True)
    weights = (is_nearer + is_tied * (places_left / is_tied.sum(dim=1, keepdim=True))) / size
    return tuple(
        {index: weight for index, weight in enumerate(row) if weight} for row in weights.tolist()
    )


def lemma_of(senses: Sequence[str]) -> str:
    """Return the lemma of sense keys with its part of speech, as in `bank NOUN`."""
    return " ".join(lemma_and_pos(senses[0]))
