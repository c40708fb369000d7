"""A sentence with predicates and their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from elmo_framework.console import plural


class Proposition(NamedTuple):
    """A predicate, and a tag for each word of its sentence: a BIO tag of its arguments.

    Attributes:
        predicate: its position, from 0; None for a sentence without predicates.
        tags: as `B-ARG0`; the predicate itself is `V`, and `C-X` continues an argument X.
    """

    predicate: int | None
    tags: tuple[str, ...]


class SrlSentence(NamedTuple):
    """A labeled sentence of a reader.

    Attributes:
        words: of the sentence.
        propositions: one for each predicate, in order.
        targets: as in `SrlExample`.
    """

    words: tuple[str, ...]
    propositions: Sequence[Proposition]
    targets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SrlExample:
    """A sentence, and what is asked about it.

    Attributes:
        words: of the sentence.
        propositions: what is known; None where it is to be predicted. Readers make one
            example for each predicate.
        predicates: the words that arguments are predicted for; None for those that
            the training data took for predicates.
        targets: the column of the corpus that marks the predicates, a cell for each word: a lemma
            or a sense; None where it has no such column. `srl-eval.pl` compares these cells.
    """

    words: tuple[str, ...]
    propositions: tuple[Proposition, ...] | None
    predicates: tuple[int | None, ...] | None = None
    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for _, tags in self.propositions or ():
            if len(tags) != len(self.words):
                raise ValueError(
                    f"{plural(len(self.words), 'word')} with {plural(len(tags), 'tag')}"
                )
        if self.targets is not None and len(self.targets) != len(self.words):
            words, targets = len(self.words), len(self.targets)
            raise ValueError(f"{plural(words, 'word')} with {plural(targets, 'target')}")
        predicates = [predicate for predicate, _ in self.propositions or ()]
        for predicate in [*predicates, *(self.predicates or ())]:
            if predicate is not None and not 0 <= predicate < len(self.words):
                raise ValueError(
                    f"predicate {predicate} is out of range for {plural(len(self.words), 'word')}"
                )


def examples_of(sentence: SrlSentence, *, skip_empty: bool) -> Iterator[SrlExample]:
    """Yield an example for each predicate of a sentence; all have the same `words` object.

    Args:
        sentence: its words, predicates and arguments.
        skip_empty: whether to skip a sentence without predicates; otherwise it has one example,
            in which every tag is O.
    """
    words, targets = sentence.words, sentence.targets
    none = Proposition(None, ("O",) * len(words))
    for proposition in sentence.propositions or (() if skip_empty else (none,)):
        yield SrlExample(words, (proposition,), targets=targets)
