"""A sentence with predicates and their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Proposition(NamedTuple):
    """A predicate, and a tag for each word of its sentence: a BIO tag of its arguments.

    Attributes:
        predicate: which word it is, from 0; None for a sentence without predicates.
        tags: as `B-ARG0`; the predicate itself is `V`, and `C-X` goes on with an argument X.
    """

    predicate: int | None
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SrlExample:
    """A sentence, and what is asked about it.

    Attributes:
        words: of the sentence.
        propositions: what is known; None where it is to be predicted. Readers put each
            predicate into an example of its own.
        predicates: the words that arguments are predicted for; None for those that
            the training data took for predicates.
    """

    words: tuple[str, ...]
    propositions: tuple[Proposition, ...] | None
    predicates: tuple[int | None, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse more tags than words, or fewer, and predicates outside the sentence."""
        for _, tags in self.propositions or ():
            if len(tags) != len(self.words):
                raise ValueError(f"{len(self.words)} words have {len(tags)} tags")
        asked = [predicate for predicate, _ in self.propositions or ()]
        for predicate in [*asked, *(self.predicates or ())]:
            if predicate is not None and not 0 <= predicate < len(self.words):
                raise ValueError(f"predicate {predicate} is none of {len(self.words)} words")


def examples_of(
    words: Sequence[str], propositions: Sequence[Proposition], *, skip_empty: bool
) -> Iterator[SrlExample]:
    """Yield an example for each predicate of a sentence; all have the same `words` object.

    Args:
        words: of the sentence.
        propositions: of the sentence.
        skip_empty: whether a sentence without predicates has no example; else it has one,
            in which every tag is O.
    """
    held = tuple(words)
    none = Proposition(None, ("O",) * len(words))
    for proposition in propositions or (() if skip_empty else (none,)):
        yield SrlExample(held, (proposition,))
