"""A document with the mentions that mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, TypeAlias

from elmo_framework.console import plural


class Mention(NamedTuple):
    """The words of a document that mention something, counted through its sentences from 0.

    Attributes:
        start: the first.
        end: the last, which belongs to the mention, as in the files of this task.
    """

    start: int
    end: int


Cluster: TypeAlias = tuple[Mention, ...]
"""All mentions of one thing, in the order of the document, as often as they are written."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document, or a part of one, and what is mentioned in it.

    Attributes:
        sentences: the words of each.
        clusters: as they are written, so that a mention may stand in two of them, and twice in
            one; None where they are not known.
        key: what the document is called.
        part: the number of this part of that document, as it is written, `000`; None where no part
            is named.
        speakers: who says or writes each word; None where it is not known.
        genre: what kind of text this is; None where it is not known.
    """

    sentences: tuple[tuple[str, ...], ...]
    clusters: tuple[Cluster, ...] | None
    key: str = ""
    part: str | None = None
    speakers: tuple[tuple[str, ...], ...] | None = None
    genre: str | None = None

    def __post_init__(self) -> None:
        """Refuse mentions outside the document, and words without a speaker beside others."""
        num_words = len(self.words)
        for mention in chain.from_iterable(self.clusters or ()):
            if not 0 <= mention.start <= mention.end < num_words:
                raise ValueError(
                    f"{list(mention)} is no mention [first word, last word] "
                    f"in a document of {plural(num_words, 'word')}"
                )
        if self.speakers is not None and lengths(self.speakers) != lengths(self.sentences):
            raise ValueError("the speakers are not as many as the words of each sentence")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all sentences."""
        return tuple(chain.from_iterable(self.sentences))

    def cut(self, max_sentences: int | None, *, remove_singletons: bool) -> Document:
        """Return the first sentences of this document, and the clusters that count in them.

        Args:
            max_sentences: how many sentences are kept; None for all. Mentions that do not end in
                them are left out.
            remove_singletons: whether what is mentioned once in them is left out.
        """
        sentences = self.sentences[:max_sentences]
        num_words = sum(lengths(sentences))
        kept = [
            [held for held in cluster if held.end < num_words] for cluster in self.clusters or ()
        ]
        clusters = clusters_of(kept, remove_singletons=remove_singletons)
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
        groups: mentions of the same thing.
        remove_singletons: whether things that are mentioned once are left out.
    """
    smallest = 2 if remove_singletons else 1
    clusters = (tuple(sorted(group)) for group in groups)
    return tuple(sorted(cluster for cluster in clusters if len(set(cluster)) >= smallest))


def merged(clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
    """Make one of the clusters that share a mention, and each mention stand there once."""
    owners: dict[Mention, set[Mention]] = {}
    for cluster in clusters:
        together = set(cluster).union(*(owners[held] for held in cluster if held in owners))
        owners.update(dict.fromkeys(together, together))
    return clusters_of({id(held): held for held in owners.values()}.values())
