"""A learned vector for each word."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float, Int64
from torch import Tensor, nn

from elmo_framework.common.component import ExistingPath, Injected
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.embedders.pretrained_vectors import read_vectors
from elmo_framework.embedders.token_embedder import TokenEmbedder

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WordIndexer(Indexer):
    """Turns each word into its id in the vocabulary of the training data.

    Attributes:
        vocabulary: whose ids are meant; 0 is padding.
        lowercase: whether words are looked up in lower case.
        min_count: how often a word was seen at least, if it is in the vocabulary.
    """

    vocabulary: Vocabulary
    lowercase: bool
    min_count: int

    @property
    def key(self) -> str:
        """The name of the ids: the same for the same way from words to ids."""
        return f"words:lowercase={self.lowercase}:min_count={self.min_count}"

    def ids(self, words: Sequence[str]) -> Int64[np.ndarray, " tokens"]:
        """Return one id a word."""
        return self.vocabulary.ids(_cased(word, self.lowercase) for word in words)


@final
@TokenEmbedder.register("embedding")
class EmbeddingTokenEmbedder(TokenEmbedder):
    """A vector for each word of the training data, and one for all others.

    Without a file the numbers are drawn evenly between -sqrt(3 / dim) and sqrt(3 / dim), so
    that a vector has the length 1 on average.

    Args:
        embedding_dim: the width of the vectors.
        vocabularies: what was counted in the training data.
        pretrained_file: vectors to start from, as text: a word and its numbers a line.
        trainable: whether the vectors are trained.
        lowercase: whether words that differ only in case share a vector.
        min_count: words seen more rarely in training share the vector of unknown words.
        missing: what words start from that are not in the file: numbers drawn from the normal
            distribution with the mean and the deviation of those in the file, or zeros.
        weights_follow: whether the vectors will be loaded from a run, and the file is not read.
    """

    def __init__(
        self,
        embedding_dim: Annotated[int, Gt(0)],
        vocabularies: Injected[Vocabularies],
        pretrained_file: ExistingPath | None = None,
        trainable: bool = True,
        lowercase: bool = False,
        min_count: Annotated[int, Gt(0)] = 1,
        missing: Literal["normal", "zeros"] = "normal",
        weights_follow: Injected[bool] = False,
    ) -> None:
        super().__init__()
        vocabulary = _words(vocabularies, lowercase=lowercase, min_count=min_count)
        self.indexer = WordIndexer(vocabulary, lowercase, min_count)
        self.indexers = [self.indexer]
        self.output_dim = embedding_dim
        self.embedding = nn.Embedding(len(vocabulary), embedding_dim, padding_idx=0)
        self.embedding.weight.requires_grad_(trainable)
        if pretrained_file is None:
            _fill_evenly(self.embedding.weight)
        elif not weights_follow:
            vectors = _read(pretrained_file, vocabulary, embedding_dim)
            _fill(self.embedding.weight, vectors, missing)

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        """Look words up."""
        embedded: Tensor = self.embedding(text.ids[self.indexer.key])
        return embedded * text.mask[:, :, None]


def _words(vocabularies: Vocabularies, *, lowercase: bool, min_count: int) -> Vocabulary:
    if not lowercase:
        return vocabularies.words(min_count=min_count)
    merged: Counter[str] = Counter()
    for word, count in vocabularies.counted("words").items():
        merged[word.lower()] += count
    return Vocabularies({"words": merged}).words(min_count=min_count)


def _cased(word: str, lowercase: bool) -> str:
    return word.lower() if lowercase else word


def _read(path: Path, vocabulary: Vocabulary, dim: int) -> dict[int, Float[np.ndarray, " dim"]]:
    """Return the vectors of a file by the ids of their words."""
    wanted = set(vocabulary.items[2:])  # after padding and unknown
    vectors = read_vectors(path, dim=dim, wanted=wanted)
    share = len(vectors) / len(wanted)
    _log.info(
        "%s: vectors for %d of %d words (%.1f %%)", path, len(vectors), len(wanted), 100 * share
    )
    return {vocabulary.id(word): vector for word, vector in vectors.items()}


@torch.no_grad()
def _fill_evenly(weight: Tensor) -> None:
    bound = math.sqrt(3 / weight.shape[1])
    weight.uniform_(-bound, bound)
    weight[0] = 0


@torch.no_grad()
def _fill(
    weight: Tensor,
    vectors: Mapping[int, Float[np.ndarray, " dim"]],
    missing: Literal["normal", "zeros"],
) -> None:
    found = torch.from_numpy(np.stack(list(vectors.values())))
    if missing == "normal":
        weight.normal_(float(found.mean()), float(found.std(correction=0)))
    else:
        weight.zero_()
    weight[list(vectors)] = found
    weight[0] = 0
