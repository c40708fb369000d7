"""Nearest neighbors of a word in context (Table 4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.console import ProgressBar
from elmo_framework.data.formats.text_files import STANDARD_INPUT
from elmo_framework.data.sentences import chunks
from elmo_framework.data.tokenizer import TokenizerConfig, build_tokenizer
from elmo_framework.embedding.corpus import Line, SentenceFiles
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.layers.encoder_files import open_encoder
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.training.process_group import choose_device

_WINDOW = 12
"""The words of a sentence that are shown around a neighbor, half of them on each side."""

_CHUNK_WORDS = 1 << 17
"""The words of a chunk, whose sentences are sorted by length and kept in memory."""


@dataclass(frozen=True)
class NeighborSearch:
    """A search for the nearest neighbors of a word.

    Attributes:
        query: a sentence.
        word: one of its words.
        corpus: text files with one sentence per line, also `.gz`.
        num_neighbors: number of neighbors per layer.
        layers: which layers are compared, 0 being that of the token encoder. None means all; but
            occurrences of one word are all the same to layer 0, and it is left out for them.
        any_word: whether every word of the corpus may be a neighbor, not `word` alone.
        tokenizer: splits the query and the lines into words.
        device: `auto`, `cpu` or `cuda`.
        position: which word of the query it is; None means its first occurrence.
        max_sentences: how many sentences with the word are compared, the first ones of the corpus;
            None means all.
        max_lines: how many lines of the corpus are read, the first ones; None means all.
    """

    query: str
    word: str
    corpus: Sequence[Path]
    num_neighbors: int = 10
    layers: Sequence[int] | None = None
    any_word: bool = False
    tokenizer: TokenizerConfig = "whitespace"
    device: str = "auto"
    position: int | None = None
    max_sentences: int | None = None
    max_lines: int | None = None


@dataclass(frozen=True)
class Occurrence:
    """A word in its sentence; `position` counts from 0."""

    words: tuple[str, ...]
    position: int

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the word, the word, and the text after it."""
        before, after = self.words[: self.position], self.words[self.position + 1 :]
        return " ".join(before), self.words[self.position], " ".join(after)

    @property
    def window(self) -> tuple[str, str, str]:
        """As `parts`, of a dozen words around the word; an ellipsis is in place of the others."""
        first = max(0, self.position - _WINDOW // 2)
        last = self.position + _WINDOW // 2 + 1
        before, after = self.words[first : self.position], self.words[self.position + 1 : last]
        dots = "\N{HORIZONTAL ELLIPSIS}"
        return (
            " ".join([*([dots] if first else []), *before]),
            self.words[self.position],
            " ".join([*after, *([dots] if last < len(self.words) else [])]),
        )

    def __str__(self) -> str:
        before, word, after = self.parts
        return f"{before} [{word}] {after}".strip()


@dataclass(frozen=True)
class Neighbor:
    """An occurrence that is near to that of the query.

    Attributes:
        similarity: the cosine between the two.
        occurrence: the word in its sentence.
        place: the file and the line of its sentence.
    """

    similarity: float
    occurrence: Occurrence
    place: str


@dataclass(frozen=True)
class Neighbors:
    """The result of a search.

    Attributes:
        query: the word in its sentence.
        by_layer: the nearest occurrences first, each occurrence once.
        num_compared: number of occurrences compared, repeated sentences included.
    """

    query: Occurrence
    by_layer: dict[int, list[Neighbor]]
    num_compared: int


class NoNeighborsError(DataError):
    """A corpus in which the word of a search does not occur besides the query."""


_Candidate: TypeAlias = tuple[int, Line, tuple[str, ...], list[int]]
"""A sentence of the corpus: its number, its line, its words, and the positions to compare."""

_Ranked: TypeAlias = tuple[float, int, int, Neighbor]
"""A neighbor after its similarity and, for the order of equal ones, its place in the corpus."""


def find_neighbors(encoder: Path | str | LayerSource, search: NeighborSearch) -> Neighbors:
    """Compare a word of a query with the words of a corpus, layer by layer.

    Memory grows neither with the corpus nor with the number of occurrences in it. The query
    itself is skipped where it appears in the corpus.

    Args:
        encoder: the folder of a biLM, of the run that trained it, or of a transformer, or the name
            of a biLM; or the opened encoder.
        search: the query, the word and the corpus.

    Raises:
        DataError: the encoder does not exist, or a file cannot be read.
        NoNeighborsError: the word is in no sentence of the corpus besides the query.
        RunError: the word is not in the query, a layer does not exist, or a corpus is not a file.
    """
    if STANDARD_INPUT in search.corpus:
        raise RunError("--corpus -: neighbors are looked for in files, not in standard input")
    tokenizer = build_tokenizer(search.tokenizer)
    query = _occurrence(search, tokenizer.words(search.query))
    source = encoder if isinstance(encoder, LayerSource) else open_encoder(encoder)
    layers = _layers(search, source.num_layers)
    device = choose_device(search.device)
    ((_, of_query),) = source.read([query.words], device=device)
    directions = functional.normalize(of_query[:, 1:-1][:, query.position], dim=-1)
    nearest: dict[int, list[_Ranked]] = {layer: [] for layer in layers}
    num_compared = 0
    with ProgressBar("reading", unit="occurrence") as progress:
        corpus = SentenceFiles(search.corpus, tokenizer=tokenizer)
        sentences = islice(_candidates(search, query, corpus), search.max_sentences)
        for candidates in chunks(sentences, lambda each: len(each[2]), max_size=_CHUNK_WORDS):
            words_of_chunk = [words for _, _, words, _ in candidates]
            for index, vectors in source.read(words_of_chunk, device=device):
                candidate = candidates[index]
                positions = candidate[-1]
                similarities = _cosines(vectors[:, 1:-1][:, positions], directions)
                for layer in layers:
                    for ranked in _ranked(candidate, similarities[layer].tolist()):
                        _keep_nearest(nearest[layer], ranked, search.num_neighbors)
                num_compared += len(positions)
                progress.advance(len(positions))
    if not num_compared:
        what = "no words" if search.any_word else f"no sentence with {search.word!r}"
        raise NoNeighborsError(f"there is {what} besides the query", path=search.corpus[0])
    by_layer = {
        layer: [neighbor for *_, neighbor in sorted(heap, reverse=True)]
        for layer, heap in nearest.items()
    }
    return Neighbors(query, by_layer, num_compared)


def _cosines(
    vectors: Float[Tensor, "layers occurrences dim"], directions: Float[Tensor, "layers dim"]
) -> Float[Tensor, "layers occurrences"]:
    return torch.einsum("lod,ld->lo", functional.normalize(vectors, dim=-1), directions)


def _ranked(candidate: _Candidate, similarities: Sequence[float]) -> Iterator[_Ranked]:
    number, line, words, positions = candidate
    for position, similarity in zip(positions, similarities, strict=True):
        place = f"{line.path}:{line.number}"
        neighbor = Neighbor(similarity, Occurrence(words, position), place)
        yield similarity, -number, -position, neighbor


def _keep_nearest(heap: list[_Ranked], ranked: _Ranked, size: int) -> None:
    """Keep the nearest neighbors among those offered, each occurrence once."""
    similarity, *_, neighbor = ranked
    if len(heap) == size and similarity <= heap[0][0]:
        return
    if any(other.occurrence == neighbor.occurrence for *_, other in heap):
        return
    heappush(heap, ranked)
    if len(heap) > size:
        heappop(heap)


def _occurrence(search: NeighborSearch, words: Sequence[str]) -> Occurrence:
    if search.word not in words:
        raise RunError(
            f"--word {search.word!r} is not a word of the query; {allowed(search.word, {*words})}"
        )
    positions = [position for position, word in enumerate(words) if word == search.word]
    if search.position is not None and search.position not in positions:
        listed = ", ".join(map(str, positions))
        raise RunError(f"position {search.position} is not one of {search.word!r}: {listed}")
    return Occurrence(tuple(words), positions[0] if search.position is None else search.position)


def _layers(search: NeighborSearch, num_layers: int) -> Sequence[int]:
    first = 0 if search.any_word else 1
    layers = range(first, num_layers) if search.layers is None else sorted({*search.layers})
    for layer in layers:
        if layer not in range(num_layers):
            raise RunError(f"--layer {layer}: the encoder has the layers 0 to {num_layers - 1}")
    return layers


def _candidates(
    search: NeighborSearch, query: Occurrence, corpus: SentenceFiles
) -> Iterator[_Candidate]:
    for number, line in enumerate(islice(corpus.lines(), search.max_lines)):
        words = tuple(corpus.words(line))
        positions = [i for i, word in enumerate(words) if search.any_word or word == search.word]
        if positions and words != query.words:
            yield number, line, words, positions
