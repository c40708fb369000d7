"""A document with clusters of coreferent mentions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, TypeAlias

from elmo_framework.console import plural


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
        if self.speakers is not None and lengths(self.speakers) != lengths(self.sentences):
            raise ValueError(
                "the number of speakers differs from the number of words of a sentence"
            )

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return tuple(chain.from_iterable(self.sentences))

    def cut(self, max_sentences: int | None, *, remove_singletons: bool) -> Document:
        """Return the first sentences of this document, and the clusters that count in them.

        Args:
            max_sentences: number of sentences to keep; None for all. Mentions that end after them
                are removed.
            remove_singletons: whether to remove clusters of one mention.
        """
        sentences = self.sentences[:max_sentences]
        num_words = sum(lengths(sentences))
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


def lengths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the length of each row."""
    return [len(row) for row in rows]


def clusters_of(
    groups: Iterable[Iterable[Mention]], *, remove_singletons: bool = False
) -> tuple[Cluster, ...]:
    """Make clusters of groups of mentions, in the order of the document.

    Args:
        groups: the mentions of one entity each.
        remove_singletons: whether to remove clusters of one mention.
    """
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
