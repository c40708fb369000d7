"""Documents with clusters of coreferent mentions, and their batches: one row per sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmo_framework.console import plural
from elmo_framework.data.labels import excerpt
from elmo_framework.data.text import DocumentPlace, Indexer, TextBatch, collate_text
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

    Attributes:
        text: their words.
        documents: the document of each sentence.
        offsets: number of words of the document before each sentence.
        speakers: a number for each speaker of a document, 0 at padding.
        genres: the genre of each document.
        mentions: for each mention that lies in one sentence, the sentence, the first and the
            last word in it, and the number of its cluster, from 1; clusters that share a mention
            have one number. None unless all documents have clusters.
        examples: the examples of the batch.
    """

    text: TextBatch
    documents: Int[Tensor, " sentences"]
    offsets: Int[Tensor, " sentences"]
    speakers: Int[Tensor, "sentences tokens"]
    genres: Int[Tensor, " documents"]
    mentions: Int[Tensor, "mentions 4"] | None
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
        sizes = self.documents.bincount(minlength=len(self.examples)).tolist()
        if max(sizes) <= max_sentences:
            return self
        windows, first = [], 0
        for size in sizes:
            num_selected = min(size, max_sentences)
            start = first + int(torch.randint(size - num_selected + 1, ()))
            windows.append(torch.arange(start, start + num_selected))
            first += size
        return self._rows(torch.cat(windows).to(self.documents.device))

    def _rows(self, rows: Int[Tensor, " rows"]) -> CoreferenceBatch:
        """Return only these sentences, in the order of the batch."""
        text, mask = self.text, self.text.mask[rows]
        assert text.places is not None
        longest = max(1, int(mask.sum(dim=1).max()))
        return replace(
            self,
            text=TextBatch(
                words=tuple(text.words[row] for row in rows.tolist()),
                mask=mask[:, :longest],
                ids={key: ids[rows, :longest] for key, ids in text.ids.items()},
                places=tuple(text.places[row] for row in rows.tolist()),
            ),
            documents=self.documents[rows],
            offsets=self.offsets[rows],
            speakers=self.speakers[rows, :longest],
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
        documents=torch.tensor(owners, dtype=torch.long),
        offsets=torch.tensor(offsets, dtype=torch.long),
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


def _mentions(examples: Sequence[Document]) -> Tensor | None:
    mentions: list[tuple[int, int, int, int]] = []
    num_rows = 0
    for example in examples:
        if example.clusters is None:
            return None
        mentions += _placed(example, merged(example.clusters), num_rows)
        num_rows += len(example.sentences)
    return torch.tensor(mentions, dtype=torch.long).view(-1, 4)


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


def _moved(mentions: Int[Tensor, "mentions 4"], rows: Int[Tensor, " rows"]) -> Tensor:
    """Return the mentions in the selected sentences, with their new rows."""
    is_there = mentions[:, :1] == rows  # mentions rows
    place = is_there.int().argmax(dim=1, keepdim=True)
    return torch.cat([place, mentions[:, 1:]], dim=1)[is_there.any(dim=1)]


@dataclass(frozen=True, slots=True)
class PackedWords:
    """Positions of the words of a batch, and their sentences and speakers by document.

    Attributes:
        places: the position of each word in the flattened padded sentences.
        sizes: number of words of each document.
        sentences: for each document, the row of the sentence of each word.
        numbers: for each document, the position of each word in it.
        speakers: for each document, the number of the speaker of each word.
    """

    places: Int[Tensor, " words"]
    sizes: list[int]
    sentences: tuple[Tensor, ...]
    numbers: tuple[Tensor, ...]
    speakers: tuple[Tensor, ...]

    @classmethod
    def of(cls, batch: CoreferenceBatch) -> PackedWords:
        mask = batch.text.mask
        rows, tokens = mask.nonzero(as_tuple=True)
        sizes = batch.documents[rows].bincount(minlength=len(batch.examples)).tolist()
        return cls(
            places=rows * mask.shape[1] + tokens,
            sizes=sizes,
            sentences=torch.split(rows, sizes),
            numbers=torch.split(batch.offsets[rows] + tokens, sizes),
            speakers=torch.split(batch.speakers[rows, tokens], sizes),
        )

    def take(self, padded: Float[Tensor, "sentences tokens dim"]) -> Float[Tensor, "words dim"]:
        """Return the vectors of the words from those of the padded sentences."""
        return padded.flatten(0, 1).index_select(0, self.places)


def gold_clusters(
    batch: CoreferenceBatch, mentions: Int[Tensor, "mentions 4"], max_width: int
) -> Int[Tensor, "words width"]:
    """Return the number of the cluster of each span, by its first word and its width less one.

    Args:
        batch: the batch of the words.
        mentions: the mentions of the batch; those wider than `max_width` are skipped.
        max_width: maximum number of words of a span.

    Returns:
        0 for a span that is not a mention.
    """
    lengths = batch.text.mask.sum(dim=1)
    firsts = lengths.cumsum(dim=0) - lengths
    grid = mentions.new_zeros(int(lengths.sum()), max_width)
    row, first, last, cluster = mentions[mentions[:, 2] - mentions[:, 1] < max_width].T
    grid[firsts[row] + first, last - first] = cluster
    return grid
