"""A learned vector for each word."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, final

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float, Float32, Int64
from torch import Tensor, nn

from elmo_framework.common.component import ExistingPath, Injected
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.data.vocabulary import Vocabularies, Vocabulary
from elmo_framework.data.word_vectors import VectorFormat, read_vectors
from elmo_framework.embedders.token_embedder import TokenEmbedder

MissingVectors: TypeAlias = Literal["normal", "zeros", "mean", "random"]

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
        pretrained_file: vectors to start from: GloVe's, fastText's or word2vec's text, a word and
            its numbers a line, or word2vec's binary form; as it is, compressed (`.gz`, `.bz2`,
            `.xz`, `.zst`), in a `.zip` or `.tar`, or `(archive)#inner` for one of several files
            in it.
        pretrained_format: of the file; null for binary if its name ends in `.bin`, and else text.
        trainable: whether the vectors are trained.
        lowercase: whether words that differ only in case share a vector.
        min_count: words seen more rarely in training share the vector of unknown words.
        case_fallback: whether a word that the file lacks gets the vector of its lower case.
        normalize: whether the vectors of the file are brought to the length 1.
        missing: what words start from that are not in the file: numbers drawn from the normal
            distribution with the mean and the deviation of those in the file (`normal`), zeros,
            the mean of the vectors in the file, or what they start from without a file
            (`random`). So does the vector of unknown words.
        weights_follow: whether the vectors will be loaded from a run, and the file is not read.
    """

    def __init__(
        self,
        embedding_dim: Annotated[int, Gt(0)],
        vocabularies: Injected[Vocabularies],
        pretrained_file: ExistingPath | None = None,
        pretrained_format: VectorFormat | None = None,
        trainable: bool = True,
        lowercase: bool = False,
        min_count: Annotated[int, Gt(0)] = 1,
        case_fallback: bool = False,
        normalize: bool = False,
        missing: MissingVectors = "normal",
        weights_follow: Injected[bool] = False,
    ) -> None:
        super().__init__()
        vocabulary = _words(vocabularies, lowercase=lowercase, min_count=min_count)
        self.indexer = WordIndexer(vocabulary, lowercase, min_count)
        self.indexers = [self.indexer]
        self.output_dim = embedding_dim
        self.embedding = nn.Embedding(len(vocabulary), embedding_dim, padding_idx=0)
        self.embedding.weight.requires_grad_(trainable)
        self._known: frozenset[int] | None = None
        if weights_follow:
            return
        _fill_evenly(self.embedding.weight)
        if pretrained_file is not None:
            vectors = _read_vectors(
                pretrained_file,
                vocabulary,
                embedding_dim,
                file_format=pretrained_format,
                case_fallback=case_fallback,
                normalize=normalize,
            )
            _fill(self.embedding.weight, vectors, missing)
            self._known = frozenset(vectors)

    def knows(self, word: str) -> bool | None:
        """Tell whether the file has a vector for a word; None where no file was read."""
        if self._known is None:
            return None
        return int(self.indexer.ids([word])[0]) in self._known

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


def _read_vectors(
    path: Path,
    vocabulary: Vocabulary,
    dim: int,
    *,
    file_format: VectorFormat | None,
    case_fallback: bool,
    normalize: bool,
) -> dict[int, Float32[np.ndarray, " dim"]]:
    """Return the vectors of the words that a file has, by their ids."""
    words = vocabulary.items[2:]  # after padding and unknown
    wanted = {*words, *(map(str.lower, words) if case_fallback else ())}
    vectors = read_vectors(path, dim=dim, wanted=wanted, file_format=file_format)
    found = {}
    for word in words:
        vector = vectors.get(word)
        if vector is None and case_fallback:
            vector = vectors.get(word.lower())
        if vector is not None:
            found[vocabulary.id(word)] = _of_length_one(vector) if normalize else vector
    share = 100 * len(found) / len(words)
    _log.info("%s: vectors for %d of %d words (%.1f %%)", path, len(found), len(words), share)
    return found


def _of_length_one(vector: Float32[np.ndarray, " dim"]) -> Float32[np.ndarray, " dim"]:
    length = np.linalg.norm(vector)
    return vector / length if length else vector


@torch.no_grad()
def _fill_evenly(weight: Tensor) -> None:
    bound = math.sqrt(3 / weight.shape[1])
    weight.uniform_(-bound, bound)
    weight[0] = 0


@torch.no_grad()
def _fill(
    weight: Tensor, vectors: Mapping[int, Float32[np.ndarray, " dim"]], missing: MissingVectors
) -> None:
    """Put the vectors of a file where they belong, and for others what stands for them."""
    found = torch.from_numpy(np.stack(list(vectors.values())))
    match missing:
        case "normal":
            weight.normal_(float(found.mean()), float(found.std(correction=0)))
        case "zeros":
            weight.zero_()
        case "mean":
            weight.copy_(found.mean(dim=0).expand_as(weight))
        case "random":  # which is there already
            pass
    weight[list(vectors)] = found
    weight[0] = 0
