"""Pretrained encoders for programs: sentences in, arrays out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_framework.api.arguments import (
    WordSplitter,
    require_list,
    require_sentences,
    require_words,
    split_texts,
)
from elmo_framework.api.layer_selection import LayerSelection, select_layers
from elmo_framework.bilm.layer_output import NUM_BOUNDARIES
from elmo_framework.data.sentences import padded_batches
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.pool import POOLS, Pool
from elmo_framework.layers.sentence_pool import pooled
from elmo_framework.layers.surprisal import ReadSentence, SentenceScore
from elmo_framework.layers.transformer_surprisal import CausalTransformer

_BATCHES_READ_AHEAD = 32
"""Full batches that `embed_iter` reads ahead, to sort sentences by length."""


class WordVectors(NamedTuple):
    """The words of a text and their vectors.

    Attributes:
        words: as the tokenizer split the text.
        vectors: (words, dim) for one layer or their average, otherwise (layers, words, dim).
    """

    words: Sequence[str]
    vectors: NDArray[np.float32]


class PretrainedEncoder(ABC):
    """Gives the layers of sentences as arrays, and their surprisals where it predicts words.

    Threads can share it; they take turns.

    Args:
        source: of the layers.
        device: computes the layers.

    Attributes:
        source: of the layers.
        num_layers: the layers of a sentence, that of the token encoder or of the embeddings
            included.
        dim: the dimension of a layer.
    """

    def __init__(self, source: LayerSource, *, device: torch.device) -> None:
        self.source, self._device = source, device
        self.num_layers, self.dim = source.num_layers, source.dim

    def embed(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[NDArray[np.float32]]:
        """Return the layers of each sentence: (layers, tokens, dim), in the order given.

        Args:
            sentences: the words of each.
            max_tokens: the largest number of steps in a batch, padding and two boundaries a
                sentence counted; it bounds the memory in addition to the result.

        Raises:
            TypeError: a sentence is a string, or a word is not.
            ValueError: `max_tokens` is not above 0.
        """
        require_list(sentences)
        vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(sentences)
        for indices, layers in self.read_words(sentences, max_tokens=max_tokens):
            for index in indices:
                vectors[index] = layers.copy()
        return vectors

    def embed_iter(
        self, sentences: Iterable[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[NDArray[np.float32]]:
        """Yield what `embed` returns, for more sentences than fit into memory.

        Args:
            sentences: the words of each; some are read ahead, so that those of similar length
                can share a batch.
            max_tokens: see `embed`.

        Raises:
            TypeError: see `embed`.
        """
        require_list(sentences)
        for chunk in sentence_batches(sentences, _BATCHES_READ_AHEAD * max_tokens):
            yield from self.embed(chunk, max_tokens=max_tokens)

    def sentences(
        self,
        texts: Sequence[str | Sequence[str]],
        *,
        pool: Pool = "mean",
        layers: LayerSelection = "average",
        tokenizer: WordSplitter = "spacy",
        max_tokens: int = 4096,
    ) -> NDArray[np.float32]:
        """Return one vector for each text: (texts, dim).

            bilm.sentences(["The dogs bark.", "It rains."]).shape     # 2 256

        A text is read as one sentence, whatever its length. One without words has zeros.

        Args:
            texts: strings, or lists of words.
            pool: `mean` or `max` over the words, or `first_last`: the vector of the first word,
                then that of the last, (texts, 2 dim).
            layers: their `average`, the `top` one, or the number of one, as of a list in Python: 0
                is that of the token encoder, -1 the top one. `all` or a list of numbers gives
                (texts, layers, dim).
            tokenizer: splits strings: a registered name, its config, a tokenizer, or a function
                from a string to a list of words.
            max_tokens: see `embed`.

        Raises:
            TypeError: `texts` is one string, or a text is neither a string nor a list of words.
            ValueError: unknown `pool` or `layers`.
            RunError: unknown tokenizer.
        """
        if pool not in POOLS:
            raise ValueError(f"pool is {pool!r}; {allowed(str(pool), POOLS)}")

        def pool_words(of_words: NDArray[np.float32]) -> NDArray[np.float32]:
            return pooled(select_layers(of_words, layers), pool)[..., 0, :]

        words = split_texts(texts, tokenizer)
        empty = pool_words(np.zeros((self.num_layers, 0, self.dim), np.float32))
        vectors = np.zeros((len(words), *empty.shape), np.float32)
        for indices, of_words in self.read_words(words, max_tokens=max_tokens):
            vectors[indices] = pool_words(of_words)
        return vectors

    def words(
        self,
        texts: Sequence[str | Sequence[str]],
        *,
        layers: LayerSelection = "average",
        tokenizer: WordSplitter = "spacy",
        max_tokens: int = 4096,
    ) -> list[WordVectors]:
        """Return the words of each text with their vectors in this context: (words, dim).

            words, vectors = bilm.words(["The dogs bark."])[0]
            vectors[words.index("bark")].shape     # 256

        The arguments and errors are those of `sentences`; with `all` layers or a list of them the
        vectors of a text are (layers, words, dim).
        """
        words = split_texts(texts, tokenizer)
        vectors = [select_layers(np.zeros((self.num_layers, 0, self.dim), np.float32), layers)]
        vectors *= len(words)
        for indices, of_words in self.read_words(words, max_tokens=max_tokens):
            for index in indices:
                vectors[index] = select_layers(of_words, layers).copy()
        return [WordVectors(*pair) for pair in zip(words, vectors, strict=True)]

    def read_words(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield the indices of equal sentences, and their layers: (layers, words, dim).

        They come in the order in which they are computed, so that few are in memory together.

        Args:
            sentences: the words of each.
            max_tokens: see `embed`.

        Raises:
            TypeError: see `embed`.
        """
        indices = distinct_indices(sentences)
        for _, words, layers in self._read(list(indices), max_tokens):
            yield indices[tuple(words)], layers[:, 1:-1].float().numpy()

    @abstractmethod
    def score(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[SentenceScore]:
        """Return the surprisals of each sentence in bits, in the order given.

        Args:
            sentences: the words of each.
            max_tokens: see `embed`.

        Raises:
            TypeError: see `embed`.
            DataError: it predicts no words, or its files are damaged.
        """

    @abstractmethod
    def score_documents(
        self, documents: Sequence[Sequence[Sequence[str]]], *, max_tokens: int = 4096
    ) -> list[list[SentenceScore]]:
        """Return the surprisals of each sentence of documents, reading each through.

        Args:
            documents: the sentences of each, in order.
            max_tokens: see `embed`.

        Raises:
            DataError: see `score`.
            RunError: it does not carry its state from sentence to sentence.
        """

    @abstractmethod
    def load_softmax(self) -> None:
        """Read what `score` needs.

        Raises:
            DataError: see `score`.
        """

    def _read(
        self, sentences: Sequence[tuple[str, ...]], max_tokens: int
    ) -> Iterator[ReadSentence]:
        """Read sentences from zeros."""
        read = self.source.read(sentences, max_tokens=max_tokens, device=self._device)
        return ((number, sentences[number], layers) for number, layers in read)


@final
class PretrainedLayers(PretrainedEncoder):
    """An encoder that predicts no words; `load_encoder` makes it."""

    def score(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[SentenceScore]:
        raise self._no_softmax()

    def score_documents(
        self, documents: Sequence[Sequence[Sequence[str]]], *, max_tokens: int = 4096
    ) -> list[list[SentenceScore]]:
        raise self._no_softmax()

    def load_softmax(self) -> None:
        raise self._no_softmax()

    def _no_softmax(self) -> DataError:
        message = "this encoder predicts no words; score with a biLM or a causal language model"
        fingerprint = self.source.fingerprint
        return DataError(message, path=None if fingerprint is None else fingerprint.path)


@final
class PretrainedTransformer(PretrainedEncoder):
    """A transformer; `load_encoder` makes it.

    Args:
        source: of the layers.
        folder: of its files; those of its softmax are read when sentences are scored.
        device: computes the layers.
        precision: of the layers, and of those below the softmax.
    """

    def __init__(
        self, source: LayerSource, *, folder: Path, device: torch.device, precision: Precision
    ) -> None:
        super().__init__(source, device=device)
        self._folder, self._precision = folder, precision

    def score(
        self, sentences: Sequence[Sequence[str]], *, max_tokens: int = 4096
    ) -> list[SentenceScore]:
        require_sentences(sentences)
        indices = distinct_indices(sentences)
        scores = self._language_model.score(list(indices), max_tokens=max_tokens)
        of_words = dict(zip(indices, scores, strict=True))
        return [of_words[tuple(words)] for words in sentences]

    def score_documents(
        self, documents: Sequence[Sequence[Sequence[str]]], *, max_tokens: int = 4096
    ) -> list[list[SentenceScore]]:
        raise RunError(
            "a transformer carries no state from sentence to sentence; score sentences alone"
        )

    def load_softmax(self) -> None:
        _ = self._language_model

    @cached_property
    def _language_model(self) -> CausalTransformer:
        return CausalTransformer(self._folder, self._device, self._precision)


def torch_device(device: str) -> torch.device:
    """Return a device by its name; `auto` is a GPU if there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.empty(0, device=device).device  # with its number, as tensors have it


def distinct_indices(sentences: Sequence[Sequence[str]]) -> dict[tuple[str, ...], list[int]]:
    """Return the distinct sentences, and the indices of each."""
    indices: dict[tuple[str, ...], list[int]] = {}
    for index, words in enumerate(sentences):
        indices.setdefault(tuple(require_words(words)), []).append(index)
    return indices


def sentence_batches(
    sentences: Iterable[Sequence[str]], max_tokens: int
) -> Iterator[list[Sequence[str]]]:
    """Return consecutive sentences, each time as many as fit when they are padded."""
    checked = map(require_words, sentences)
    return padded_batches(checked, lambda words: len(words) + NUM_BOUNDARIES, max_tokens=max_tokens)
