"""Nearest neighbours of a word in context (Table 4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.console import ProgressBar
from elmo_framework.data.formats.text_files import STANDARD_INPUT
from elmo_framework.data.sentences import pools
from elmo_framework.embedding.corpus import Line, SentenceFiles
from elmo_framework.errors import DataError, RunError, allowed
from elmo_framework.experiment.inputs import TokenizerConfig, build_tokenizer
from elmo_framework.layers.open_layers import open_layers
from elmo_framework.training.process_group import choose_device

_POOL_WORDS = 1 << 17
"""The words of a pool, whose sentences are sorted by length and kept in memory."""


@dataclass(frozen=True)
class NeighborSearch:
    """A search for the nearest neighbours of a word.

    Attributes:
        query: a sentence.
        word: one of its words, of which the first occurrence counts.
        corpus: text files with one sentence per line, also `.gz`.
        num_neighbors: number of neighbours per layer.
        layers: which layers are compared, 0 being that of the token encoder. None means all; but
            occurrences of one word are all the same to layer 0, and it is left out for them.
        any_word: whether every word of the corpus may be a neighbour, not `word` alone.
        tokenizer: splits the query and the lines into words.
        device: `auto`, `cpu` or `cuda`.
    """

    query: str
    word: str
    corpus: Sequence[Path]
    num_neighbors: int = 10
    layers: Sequence[int] | None = None
    any_word: bool = False
    tokenizer: TokenizerConfig = "whitespace"
    device: str = "auto"


@dataclass(frozen=True)
class Occurrence:
    """A word in its sentence.

    Attributes:
        words: of the sentence.
        position: of the word among them, from 0.
    """

    words: tuple[str, ...]
    position: int

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the word, the word, and the text after it."""
        before, after = self.words[: self.position], self.words[self.position + 1 :]
        return " ".join(before), self.words[self.position], " ".join(after)

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


def find_neighbors(bilm: Path | str, search: NeighborSearch) -> Neighbors:
    """Compare a word of a query with the words of a corpus, layer by layer.

    Memory grows neither with the corpus nor with the number of occurrences in it. The query
    itself is skipped where it appears in the corpus.

    Args:
        bilm: the folder of a biLM, or of the run that trained it, or the name of one.
        search: the query, the word and the corpus.

    Raises:
        DataError: the biLM does not exist, a file cannot be read, or the word is not in it.
        RunError: the word is not in the query, a layer does not exist, or a corpus is not a file.
    """
    if STANDARD_INPUT in search.corpus:
        raise RunError("--corpus -: neighbours are looked for in files, not in standard input")
    files, tokenizer = resolve_bilm(bilm), build_tokenizer(search.tokenizer)
    query = _occurrence(search, tokenizer.words(search.query))
    source = open_layers(files)
    layers = _layers(search, source.num_layers)
    device = choose_device(search.device)
    ((_, of_query),) = source.read([query.words], device=device)
    directions = functional.normalize(of_query[:, 1:-1][:, query.position], dim=-1)
    nearest = {layer: _Nearest(search.num_neighbors) for layer in layers}
    num_compared = 0
    with ProgressBar("reading", unit="occurrence") as progress:
        corpus = SentenceFiles(search.corpus, tokenizer=tokenizer)
        sentences = _candidates(search, query, corpus)
        for candidates in pools(sentences, lambda each: len(each.words), max_size=_POOL_WORDS):
            sentences_of_pool = [candidate.words for candidate in candidates]
            for index, vectors in source.read(sentences_of_pool, device=device):
                candidate = candidates[index]
                similarities = _cosines(vectors[:, 1:-1][:, candidate.positions], directions)
                for layer in layers:
                    nearest[layer].offer(candidate, similarities[layer].tolist())
                num_compared += len(candidate.positions)
                progress.advance(len(candidate.positions))
    if not num_compared:
        what = "no words" if search.any_word else f"no sentence with {search.word!r}"
        raise DataError(f"there is {what} besides the query", path=search.corpus[0])
    by_layer = {layer: nearest[layer].sorted() for layer in layers}
    return Neighbors(query, by_layer, num_compared)


def _cosines(
    vectors: Float[Tensor, "layers occurrences dim"], directions: Float[Tensor, "layers dim"]
) -> Float[Tensor, "layers occurrences"]:
    return torch.einsum("lod,ld->lo", functional.normalize(vectors, dim=-1), directions)


@dataclass(frozen=True)
class _Candidate:
    """A sentence of the corpus, and which of its words are compared.

    Attributes:
        number: among all sentences, for the order of equal similarities.
        line: of the input.
        words: of the sentence.
        positions: of the words that are compared.
    """

    number: int
    line: Line
    words: tuple[str, ...]
    positions: list[int]


@final
class _Nearest:
    """Keeps the nearest occurrences of those that are offered, each once.

    Args:
        size: the number of items to keep.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[float, int, int, Neighbor]] = []

    def offer(self, candidate: _Candidate, similarities: Sequence[float]) -> None:
        for position, similarity in zip(candidate.positions, similarities, strict=True):
            if len(self._heap) == self._size and similarity <= self._heap[0][0]:
                continue
            occurrence = Occurrence(candidate.words, position)
            if any(neighbor.occurrence == occurrence for *_, neighbor in self._heap):
                continue
            place = f"{candidate.line.path}:{candidate.line.number}"
            neighbor = Neighbor(similarity, occurrence, place)
            item = similarity, -candidate.number, -position, neighbor
            if len(self._heap) < self._size:
                heappush(self._heap, item)
            else:
                heappushpop(self._heap, item)

    def sorted(self) -> list[Neighbor]:
        return [neighbor for *_, neighbor in sorted(self._heap, reverse=True)]


def _occurrence(search: NeighborSearch, words: Sequence[str]) -> Occurrence:
    if search.word not in words:
        raise RunError(
            f"--word {search.word!r} is not a word of the query; {allowed(search.word, {*words})}"
        )
    return Occurrence(tuple(words), words.index(search.word))


def _layers(search: NeighborSearch, num_layers: int) -> Sequence[int]:
    first = 0 if search.any_word else 1
    layers = range(first, num_layers) if search.layers is None else sorted({*search.layers})
    for layer in layers:
        if layer not in range(num_layers):
            raise RunError(f"--layer {layer}: the biLM has the layers 0 to {num_layers - 1}")
    return layers


def _candidates(
    search: NeighborSearch, query: Occurrence, corpus: SentenceFiles
) -> Iterator[_Candidate]:
    """Yield the sentences that have words to compare."""
    for number, line in enumerate(corpus.lines()):
        words = tuple(corpus.words(line))
        positions = [i for i, word in enumerate(words) if search.any_word or word == search.word]
        if positions and words != query.words:
            yield _Candidate(number, line, words, positions)
