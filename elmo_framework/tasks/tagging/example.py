"""A sentence with tags."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_framework.console import plural


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence, and optionally a tag for each word."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words):
            words, tags = plural(len(self.words), "word"), plural(len(self.tags), "tag")
            raise ValueError(f"{words} with {tags}")
