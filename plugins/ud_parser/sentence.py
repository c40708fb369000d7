"""Sentences of Universal Dependencies and their analyses."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from elmo_framework.data import TextBatch

IGNORED = -100
"""The target of a word whose label did not occur in training; it does not count for the loss."""


@dataclass(frozen=True, slots=True)
class Parse:
    """The analysis of a sentence, with one item for each word.

    Attributes:
        upos: universal parts of speech.
        feats: morphological features, `Case=Nom|Number=Sing`; `_` for none.
        lemmas: lemmas; `_` if unknown.
        heads: the number of the head of each word, from 1; 0 for the root.
        deprels: the relation of each word to its head.
    """

    upos: tuple[str, ...]
    feats: tuple[str, ...]
    lemmas: tuple[str, ...]
    heads: tuple[int, ...]
    deprels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UdSentence:
    """The words of a sentence, and what a CoNLL-U file has around them.

    Attributes:
        words: the syntactic words.
        parse: their analysis; None if unknown.
        comments: the lines before the words, with `#`.
        multiword: for each multiword token the number of its first word and its line.
        misc: the last column of each word; empty if there is none.
    """

    words: tuple[str, ...]
    parse: Parse | None
    comments: tuple[str, ...] = ()
    multiword: tuple[tuple[int, str], ...] = ()
    misc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Targets:
    """The right answers of a batch as ids; `IGNORED` at padding and for unseen labels."""

    upos: Int[Tensor, "batch tokens"]
    feats: Int[Tensor, "batch tokens"]
    lemmas: Int[Tensor, "batch tokens"]
    heads: Int[Tensor, "batch tokens"]
    deprels: Int[Tensor, "batch tokens"]


@dataclass(frozen=True, slots=True)
class UdBatch:
    """Sentences, padded to the longest.

    Attributes:
        text: the words.
        targets: None unless all sentences have an analysis.
        examples: the sentences.
    """

    text: TextBatch
    targets: Targets | None
    examples: tuple[UdSentence, ...]

    @property
    def num_tokens(self) -> int:
        """The number of words, without padding."""
        return self.text.num_words

    @property
    def title(self) -> str:
        """The first sentence and the number of others, for messages."""
        return f"{' '.join(self.text.words[0])!r} and {len(self.examples) - 1} more"
