"""A learned vector for each word."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64, UInt8
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.config.types import Count, CountOrZero, Dim, Injected, TextPath
from elmo_framework.console import plural
from elmo_framework.data.formats.word_vector_files import Vectors, WordVectorFormat, read_vectors
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.data.vocabulary import UNKNOWN, Vocabularies, Vocabulary
from elmo_framework.embedders.text_embedder import TokenEmbedder

MissingVectors: TypeAlias = Literal["normal", "zeros", "mean", "random"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WordIndexer(Indexer):
    """Turns each word into its id in the vocabulary of the training data, or behind it.

    Attributes:
        vocabulary: whose ids are meant; 0 is padding.
        lowercase: whether words are looked up in lower case.
        min_count: the minimum count of a word in the vocabulary.
        case_fallback: whether a word that is not found is looked up in lower case then.
        unseen: other words, whose ids follow; by their row, from 1.
        unseen_key: identifies those words.
    """

    vocabulary: Vocabulary
    lowercase: bool
    min_count: int
    case_fallback: bool
    unseen: Mapping[str, int]
    unseen_key: str

    @property
    def key(self) -> str:
        return (
            f"words:lowercase={self.lowercase}:min_count={self.min_count}"
            f":case_fallback={self.case_fallback}:{self.unseen_key}"
        )

    def ids(self, words: Sequence[str]) -> Int64[np.ndarray, " tokens"]:
        return np.fromiter(map(self._id, words), dtype=np.int64, count=len(words))

    def _id(self, word: str) -> int:
        first = word.lower() if self.lowercase else word
        for form in (first, word.lower()) if self.case_fallback else (first,):
            if form in self.vocabulary:
                return self.vocabulary.id(form)
            if form in self.unseen:
                return len(self.vocabulary) - 1 + self.unseen[form]
        return self.vocabulary.id(UNKNOWN)


@final
@TokenEmbedder.register("embedding")
class EmbeddingTokenEmbedder(TokenEmbedder):
    """A vector for each word of the training data and for the first others of a file.

    What is left shares one vector. Without a file the numbers are drawn evenly between
    -sqrt(3 / dim) and sqrt(3 / dim), so that a vector has the length 1 on average.

    Args:
        embedding_dim: the dimension of the vectors.
        vocabularies: counted in the training data.
        pretrained_file: vectors to start from: GloVe's, fastText's or word2vec's text, a word and
            its numbers a line, or word2vec's binary form; as it is, compressed (`.gz`, `.bz2`,
            `.xz`, `.zst`), in a `.zip` or `.tar`, or `(archive)#inner` for one of several files
            in it.
        pretrained_format: of the file; null for binary if its name ends in `.bin`, and else text.
        trainable: whether the vectors are trained.
        lowercase: whether words that differ only in case share a vector.
        min_count: words seen more rarely in training have no vector that is trained: that of the
            file (`max_unseen_words`), or else that of unknown words.
        case_fallback: whether a word without a vector is looked up in lower case.
        normalize: whether the vectors of the file are brought to the length 1.
        max_unseen_words: how many words of the file have their vectors besides those of training,
            the first ones, which in all published files are the frequent ones; null for all. They
            are not trained, and are kept with the run and in its checkpoints.
        missing: what words start from that are not in the file: numbers drawn from the normal
            distribution with the mean and the deviation of those in the file (`normal`), zeros,
            the mean of the vectors in the file, or what they start from without a file
            (`random`). So does the vector of unknown words.
        projection_dim: output dimension of a linear layer after the vectors; null for no such
            layer.
        weights_follow: whether the vectors will be loaded from a run, and the file is not read.
    """

    def __init__(
        self,
        embedding_dim: Dim,
        vocabularies: Injected[Vocabularies],
        pretrained_file: TextPath | None = None,
        pretrained_format: WordVectorFormat | None = None,
        trainable: bool = True,
        lowercase: bool = False,
        min_count: Count = 1,
        case_fallback: bool = False,
        normalize: bool = False,
        max_unseen_words: CountOrZero | None = 100_000,
        missing: MissingVectors = "normal",
        projection_dim: Dim | None = None,
        weights_follow: Injected[bool] = False,
    ) -> None:
        super().__init__()
        vocabulary = _words(vocabularies, lowercase=lowercase, min_count=min_count)
        self.output_dim, self._num_seen = projection_dim or embedding_dim, len(vocabulary)
        self.embedding = nn.Embedding(len(vocabulary), embedding_dim, padding_idx=0)
        self.embedding.weight.requires_grad_(trainable)
        self.projection = (
            nn.Identity() if projection_dim is None else nn.Linear(embedding_dim, projection_dim)
        )
        self._known: frozenset[int] | None = None
        self._is_from_file = pretrained_file is not None
        unseen: Vectors = {}
        if not weights_follow:
            _fill_evenly(self.embedding.weight)
            if pretrained_file is not None:
                vectors, unseen = _read_vectors(
                    pretrained_file,
                    vocabulary,
                    embedding_dim,
                    file_format=pretrained_format,
                    lowercase=lowercase,
                    case_fallback=case_fallback,
                    normalize=normalize,
                    max_unseen=max_unseen_words,
                )
                _fill(self.embedding.weight, vectors, missing)
                self._known = frozenset(vectors)
        self.unseen = OovVectors(embedding_dim, unseen)
        self.indexer = WordIndexer(
            vocabulary,
            lowercase,
            min_count,
            case_fallback,
            self.unseen.rows,
            f"{pretrained_file}:{max_unseen_words}",
        )
        self.indexers = [self.indexer]

    def parameters_from_file(self) -> Iterable[Tensor]:
        return [self.embedding.weight] if self._is_from_file else []

    def has_vector(self, word: str) -> bool | None:
        if self._known is None:
            return None
        id_of_word = int(self.indexer.ids([word])[0])
        return id_of_word in self._known or id_of_word >= self._num_seen

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        ids = text.ids[self.indexer.key]
        rows = (ids - (self._num_seen - 1)).clamp(min=0)
        embedded: Tensor = self.embedding(ids.masked_fill(rows > 0, 0)) + self.unseen(rows)
        projected: Tensor = self.projection(embedded)
        return projected * text.mask[:, :, None]


def _words(vocabularies: Vocabularies, *, lowercase: bool, min_count: int) -> Vocabulary:
    if not lowercase:
        return vocabularies.words(min_count=min_count)
    merged: Counter[str] = Counter()
    for word, count in vocabularies.counted("words").items():
        merged[word.lower()] += count
    return Vocabularies({"words": merged}).words(min_count=min_count)


def _read_vectors(
    path: Path,
    vocabulary: Vocabulary,
    dim: int,
    *,
    file_format: WordVectorFormat | None,
    lowercase: bool,
    case_fallback: bool,
    normalize: bool,
    max_unseen: int | None,
) -> tuple[dict[int, Float32[np.ndarray, " dim"]], Vectors]:
    """Return the vectors of the words that a file has, by their ids, and of unseen words."""
    words = vocabulary.items[2:]  # after padding and unknown
    wanted = {*words, *(map(str.lower, words) if case_fallback else ())}
    vectors = read_vectors(
        path,
        dim=dim,
        wanted=wanted,
        max_unseen=max_unseen,
        lowercase=lowercase,
        file_format=file_format,
    )
    if normalize:
        lengths = {word: np.linalg.norm(vector) or 1.0 for word, vector in vectors.items()}
        vectors = {word: vector / lengths[word] for word, vector in vectors.items()}
    by_id = {}
    for word in words:
        vector = vectors.get(word)
        if vector is None and case_fallback:
            vector = vectors.get(word.lower())
        if vector is not None:
            by_id[vocabulary.id(word)] = vector
    # Lower-case forms were read besides `max_unseen`; the words come in the order of the file.
    of_unseen = ((word, vector) for word, vector in vectors.items() if word not in vocabulary)
    unseen = dict(islice(of_unseen, max_unseen))
    _log.info(
        "%s: vectors for %d of %s (%.1f %%), and for %s",
        path,
        len(by_id),
        plural(len(words), "word"),
        100 * len(by_id) / max(1, len(words)),
        plural(len(unseen), "unseen one"),
    )
    return by_id, unseen


@torch.no_grad()
def _fill_evenly(weight: Tensor) -> None:
    bound = math.sqrt(3 / weight.shape[1])
    weight.uniform_(-bound, bound)
    weight[0] = 0


@torch.no_grad()
def _fill(
    weight: Tensor, vectors: Mapping[int, Float32[np.ndarray, " dim"]], missing: MissingVectors
) -> None:
    if missing == "zeros":
        weight.zero_()
    if vectors:  # otherwise no word is as frequent as `min_count`, and the rest stays random
        rows = torch.from_numpy(np.stack(list(vectors.values())))
        if missing == "normal":
            weight.normal_(float(rows.mean()), float(rows.std(correction=0)))
        elif missing == "mean":
            weight.copy_(rows.mean(dim=0).expand_as(weight))
        weight[list(vectors)] = rows
    weight[0] = 0


class OovVectors(nn.Module):
    """Vectors of words that training has not seen; never trained, and saved with the words.

    Args:
        dim: the dimension of the vectors.
        vectors: of the words; an empty one, or one with a line feed in it, is left out.

    Attributes:
        rows: of the words, from 1.
        vectors: a row a word; row 0 is zero.
        spelling: the words in UTF-8, between line feeds.
    """

    vectors: Float[Tensor, "rows dim"]
    spelling: UInt8[Tensor, " bytes"]

    def __init__(self, dim: int, vectors: Mapping[str, Float32[np.ndarray, " dim"]]) -> None:
        super().__init__()
        vectors = {word: vector for word, vector in vectors.items() if word and "\n" not in word}
        self.rows = _numbered(vectors)
        table = np.zeros((1 + len(vectors), dim), dtype=np.float32)
        for row, vector in enumerate(vectors.values(), start=1):
            table[row] = vector
        self.register_buffer("vectors", torch.from_numpy(table))
        spelling = np.frombuffer("\n".join(vectors).encode(), dtype=np.uint8)
        self.register_buffer("spelling", torch.from_numpy(spelling.copy()))

    def forward(self, rows: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens dim"]:
        return functional.embedding(rows, self.vectors)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *arguments: Any
    ) -> None:
        """Take over as many words as were kept."""
        spelling = state_dict.get(f"{prefix}spelling")
        vectors = state_dict.get(f"{prefix}vectors")
        if spelling is not None and vectors is not None:
            self.vectors = self.vectors.new_zeros(len(vectors), self.vectors.shape[1])
            self.spelling = self.spelling.new_zeros(len(spelling))
            words = bytes(spelling.cpu().numpy()).decode().split("\n") if len(spelling) else []
            self.rows.clear()  # in place, as indexers refer to it
            self.rows.update(_numbered(words))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _numbered(words: Iterable[str]) -> dict[str, int]:
    return {word: row for row, word in enumerate(words, start=1)}
