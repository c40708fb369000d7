"""Documents with clusters of coreferent mentions, and their batches: one row per sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.data.labels import excerpt
from elmo_framework.data.text import DocumentPlace, Indexer, TextBatch, collate_text, mask_of
from elmo_framework.data.vocabulary import Vocabulary


class Mention(NamedTuple):
    """A span of words that refers to an entity, counted through the document from 0.

    Attributes:
        start: the first word.
        end: the last word, inclusive, as in the files of this task.
    """

    start: int
    end: int


Cluster: TypeAlias = tuple[Mention, ...]
"""All mentions of one entity, in the order of the document, including repetitions."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document, or a part of one, and its clusters of mentions.

    Attributes:
        sentences: the words of each.
        clusters: as in the file, so that a mention may be in two of them, and twice in one;
            None if unknown.
        key: the name of the document.
        part: the number of this part of that document, as in the file, `000`; None if the file
            has no parts.
        speakers: the speaker or author of each word; None if unknown.
        genre: the genre of the text; None if unknown.
    """

    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[Cluster, ...] | None
    key: str = ""
    part: str | None = None
    speakers: tuple[tuple[str, ...], ...] | None = None
    genre: str | None = None

    def __post_init__(self) -> None:
        num_words = len(self.words)
        for mention in chain.from_iterable(self.clusters or ()):
            if not 0 <= mention.start <= mention.end < num_words:
                raise ValueError(
                    f"{list(mention)} is not a valid mention [first word, last word] "
                    f"in a document of {plural(num_words, 'word')}"
                )
        sizes = list(map(len, self.sentences))
        if self.speakers is not None and list(map(len, self.speakers)) != sizes:
            raise ValueError(
                "the number of speakers differs from the number of words of a sentence"
            )

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self.sentences))

    @property
    def offsets(self) -> list[int]:
        """The number of words before each sentence."""
        return list(accumulate(map(len, self.sentences), initial=0))[:-1]

    def cut(self, max_sentences: int | None, *, remove_singletons: bool) -> Document:
        """Return the first sentences of this document, and the clusters that count in them.

        Args:
            max_sentences: number of sentences to keep; None for all. Mentions that end after them
                are removed.
            remove_singletons: whether to remove clusters of one mention.
        """
        sentences = self.sentences[:max_sentences]
        num_words = sum(map(len, sentences))
        groups = [
            [mention for mention in cluster if mention.end < num_words]
            for cluster in self.clusters or ()
        ]
        clusters = clusters_of(groups, remove_singletons=remove_singletons)
        return replace(
            self,
            sentences=sentences,
            clusters=None if self.clusters is None else clusters,
            speakers=None if self.speakers is None else self.speakers[:max_sentences],
        )


def clusters_of(
    groups: Iterable[Iterable[Mention]], *, remove_singletons: bool = False
) -> tuple[Cluster, ...]:
    """Make clusters of groups of mentions, in the order of the document."""
    smallest = 2 if remove_singletons else 1
    clusters = (tuple(sorted(group)) for group in groups)
    return tuple(sorted(cluster for cluster in clusters if len(set(cluster)) >= smallest))


def merged(clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """Merge clusters that share a mention, and remove repetitions of mentions."""
    owners: dict[Mention, set[Mention]] = {}
    for cluster in clusters:
        together = set(cluster).union(
            *(owners[mention] for mention in cluster if mention in owners)
        )
        owners.update(dict.fromkeys(together, together))
    return clusters_of({id(group): group for group in owners.values()}.values())


@dataclass(frozen=True, slots=True)
class CoreferenceBatch:
    """The sentences of some documents, one after the other, padded to the longest.

    What decides shapes is in NumPy's arrays, which stay on the CPU.

    Attributes:
        text: their words.
        documents: the document of each sentence.
        offsets: number of words of the document before each sentence.
        speakers: a number for each speaker of a document, 0 at padding.
        genres: the genre of each document.
        mentions: "mentions 4": for each mention that lies in one sentence, the sentence, the
            first and the last word in it, and the number of its cluster, from 1; clusters that
            share a mention have one number. None unless all documents have clusters.
        examples: the examples of the batch.
    """

    text: TextBatch
    documents: NDArray[np.int64]
    offsets: NDArray[np.int64]
    speakers: Int[Tensor, "sentences tokens"]
    genres: Int[Tensor, " documents"]
    mentions: NDArray[np.int64] | None
    examples: tuple[Document, ...]

    @property
    def num_tokens(self) -> int:
        return self.text.num_words

    @property
    def title(self) -> str:
        first = self.examples[0]
        start = excerpt(first.words)
        return f"{first.key or 'a document'} ({start}) and {len(self.examples) - 1} more"

    def window(self, max_sentences: int) -> CoreferenceBatch:
        """Reduce each longer document to `max_sentences` consecutive ones at a random position."""
        sizes = np.bincount(self.documents, minlength=len(self.examples)).tolist()
        if max(sizes) <= max_sentences:
            return self
        rows: list[int] = []
        first = 0
        for size in sizes:
            num_selected = min(size, max_sentences)
            start = first + int(torch.randint(size - num_selected + 1, ()))
            rows += range(start, start + num_selected)
            first += size
        return self._rows(rows)

    def _rows(self, rows: Sequence[int]) -> CoreferenceBatch:
        """Return only these sentences, in the order of the batch."""
        selected = torch.tensor(rows)
        text = self.text.rows(selected).cropped()
        speakers = self.speakers[selected.to(self.speakers.device, non_blocking=True)]
        return replace(
            self,
            text=text,
            documents=self.documents[rows],
            offsets=self.offsets[rows],
            speakers=speakers[:, : text.mask.shape[1]],
            mentions=None if self.mentions is None else _moved(self.mentions, rows),
        )


def coreference_batch(
    examples: Sequence[Document], genres: Vocabulary, indexers: Sequence[Indexer]
) -> CoreferenceBatch:
    """Make a batch of documents; genres that are not in `genres` count as unknown."""
    sentences = [words for example in examples for words in example.sentences]
    places = [
        DocumentPlace(each.sentences, number)
        for each in examples
        for number in range(len(each.sentences))
    ]
    text = collate_text(sentences, indexers, places=places)
    owners = [number for number, each in enumerate(examples) for _ in each.sentences]
    offsets = [offset for each in examples for offset in each.offsets]
    return CoreferenceBatch(
        text=text,
        documents=np.array(owners, dtype=np.int64),
        offsets=np.array(offsets, dtype=np.int64),
        speakers=_speakers(examples, text),
        genres=torch.from_numpy(genres.ids(each.genre or "" for each in examples)),
        mentions=_mentions(examples),
        examples=tuple(examples),
    )


def _speakers(examples: Iterable[Document], text: TextBatch) -> Tensor:
    padded = torch.zeros(text.mask.shape, dtype=torch.long)
    row = 0
    for example in examples:
        speakers: dict[str, int] = {}
        for names in example.speakers or [()] * len(example.sentences):
            numbers = [speakers.setdefault(name, len(speakers)) for name in names]
            padded[row, : len(numbers)] = torch.tensor(numbers, dtype=torch.long)
            row += 1
    return padded


def _mentions(examples: Sequence[Document]) -> NDArray[np.int64] | None:
    mentions: list[tuple[int, int, int, int]] = []
    num_rows = 0
    for example in examples:
        if example.clusters is None:
            return None
        mentions += _placed(example, merged(example.clusters), num_rows)
        num_rows += len(example.sentences)
    return np.array(mentions, dtype=np.int64).reshape(-1, 4)


def _placed(
    document: Document, clusters: Sequence[Cluster], first_row: int
) -> Iterable[tuple[int, int, int, int]]:
    places = [
        (first_row + row, token)
        for row, words in enumerate(document.sentences)
        for token in range(len(words))
    ]
    for number, cluster in enumerate(clusters, start=1):
        for mention in cluster:
            (row, first), (last_row, last) = places[mention.start], places[mention.end]
            if row == last_row:
                yield row, first, last, number


def _moved(mentions: NDArray[np.int64], rows: Sequence[int]) -> NDArray[np.int64]:
    """Return the mentions in the selected sentences, with their new rows."""
    is_there = mentions[:, :1] == np.array(rows)  # mentions rows
    place = is_there.argmax(axis=1, keepdims=True)
    moved = np.concatenate([place, mentions[:, 1:]], axis=1)[is_there.any(axis=1)]
    return np.asarray(moved)


@dataclass(frozen=True, slots=True)
class PackedWords:
    """Positions of the words of a batch, and their sentences and speakers by document.

    Attributes:
        places: the position of each word in the flattened padded sentences.
        sizes: number of words of each document.
        lengths: for each document, the number of words of each sentence.
        sentences: for each document, the row of the sentence of each word.
        numbers: for each document, the position of each word in it.
        speakers: for each document, the number of the speaker of each word.
    """

    places: Int[Tensor, " words"]
    sizes: list[int]
    lengths: list[list[int]]
    sentences: tuple[Tensor, ...]
    numbers: tuple[Tensor, ...]
    speakers: tuple[Tensor, ...]

    @classmethod
    def of(cls, batch: CoreferenceBatch) -> PackedWords:
        lengths, num_tokens = _lengths(batch), batch.text.mask.shape[1]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        tokens = np.arange(len(rows)) - _firsts(lengths)[rows]
        known = np.stack([rows * num_tokens + tokens, rows, batch.offsets[rows] + tokens])
        on_device = torch.from_numpy(known).to(batch.text.mask.device, non_blocking=True)
        places, sentences, numbers = on_device.unbind()
        of_documents = [lengths[batch.documents == number] for number in range(len(batch.examples))]
        sizes = [int(each.sum()) for each in of_documents]
        return cls(
            places=places,
            sizes=sizes,
            lengths=[each.tolist() for each in of_documents],
            sentences=torch.split(sentences, sizes),
            numbers=torch.split(numbers, sizes),
            speakers=torch.split(batch.speakers.flatten().index_select(0, places), sizes),
        )

    def take(self, padded: Float[Tensor, "sentences tokens dim"]) -> Float[Tensor, "words dim"]:
        """Return the vectors of the words from those of the padded sentences."""
        return padded.flatten(0, 1).index_select(0, self.places)


def _lengths(batch: CoreferenceBatch) -> NDArray[np.int64]:
    """Return the number of words of each sentence."""
    return np.array([len(words) for words in batch.text.words], dtype=np.int64)


def _firsts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of words before each sentence."""
    return np.asarray(lengths.cumsum() - lengths)


def document_text(batch: CoreferenceBatch, packed: PackedWords) -> tuple[TextBatch, PackedWords]:
    """Return the words of a batch with one row for each document, and their positions there."""
    text, device = batch.text, batch.text.mask.device
    mask = mask_of(packed.sizes, max(1, *packed.sizes))
    places = mask.flatten().nonzero().squeeze(1).to(device, non_blocking=True)
    words: list[tuple[str, ...]] = [()] * len(packed.sizes)
    for owner, sentence in zip(batch.documents.tolist(), text.words, strict=True):
        words[owner] += sentence
    ids = {}
    for key, padded in text.ids.items():
        joined = padded.new_zeros(mask.numel(), *padded.shape[2:])
        joined = joined.index_copy(0, places, padded.flatten(0, 1)[packed.places])
        ids[key] = joined.view(*mask.shape, *padded.shape[2:])
    whole = tuple(DocumentPlace((each,), 0) for each in words)
    mask = mask.to(device, non_blocking=True)
    return TextBatch(tuple(words), mask, ids, whole), replace(packed, places=places)


def gold_clusters(
    batch: CoreferenceBatch, mentions: NDArray[np.int64], max_width: int
) -> Int[Tensor, "words width"]:
    """Return the number of the cluster of each span, by its first word and its width less one.

    Args:
        batch: the batch of the words.
        mentions: the mentions of the batch; those wider than `max_width` are skipped.
        max_width: maximum number of words of a span.

    Returns:
        0 for a span that is not a mention.
    """
    lengths, device = _lengths(batch), batch.text.mask.device
    row, first, last, cluster = mentions[mentions[:, 2] - mentions[:, 1] < max_width].T
    known = np.stack([_firsts(lengths)[row] + first, last - first, cluster])
    start, width, number = torch.from_numpy(known).to(device, non_blocking=True)
    grid: Tensor = number.new_zeros(int(lengths.sum()), max_width)
    grid[start, width] = number
    return grid
