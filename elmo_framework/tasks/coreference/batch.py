"""Documents as tensors with one row per sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from jaxtyping import Int
from torch import Tensor

from elmo_framework.data.labels import excerpt
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.tasks.coreference.example import Cluster, Document, lengths, merged


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
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The first document, and the number of further ones."""
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
        longest = max(1, int(mask.sum(dim=1).max()))
        return replace(
            self,
            text=TextBatch(
                words=tuple(text.words[row] for row in rows.tolist()),
                mask=mask[:, :longest],
                ids={key: ids[rows, :longest] for key, ids in text.ids.items()},
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
    text = collate_text(sentences, indexers)
    owners = [number for number, each in enumerate(examples) for _ in each.sentences]
    offsets = [offset for each in examples for offset in _offsets(each)]
    return CoreferenceBatch(
        text=text,
        documents=torch.tensor(owners, dtype=torch.long),
        offsets=torch.tensor(offsets, dtype=torch.long),
        speakers=_speakers(examples, text),
        genres=torch.from_numpy(genres.ids(each.genre or "" for each in examples)),
        mentions=_mentions(examples),
        examples=tuple(examples),
    )


def _offsets(document: Document) -> list[int]:
    return list(accumulate(lengths(document.sentences), initial=0))[:-1]


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
