"""Lemmatization by edit scripts: rules that turn a word into its lemma.

A rule changes the case of a word, removes characters at both ends and adds others there; or it
replaces the word. `dogs` becomes `dog` by "lower case, remove 1 character at the end", which is the
rule of `Books` and `book` too. So lemmas are predicted by a classifier over rules (Chrupala 2006;
the form of rules follows UDPipe 2, Straka 2018).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

_SEPARATOR = "\t"  # occurs in no cell of a CoNLL-U file
_REPLACE = "replace"
_CASES = ("lower", "keep", "title", "upper")
UNKNOWN_LEMMA = "_"


class LemmaRule(NamedTuple):
    """One rule.

    Attributes:
        case: of the word before the edit: `lower`, or `keep` as it is; `title` and `upper` edit the
            word in lower case, and change the case of the result. With `replace` the lemma is
            `new_prefix`, whatever the word is.
        prefix: the number of characters to remove from the beginning.
        new_prefix: added in their place.
        suffix: the number of characters to remove from the end.
        new_suffix: added in their place.
    """

    case: str
    prefix: int = 0
    new_prefix: str = ""
    suffix: int = 0
    new_suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> LemmaRule:
        """Read what `str` writes."""
        case, prefix, new_prefix, suffix, new_suffix = text.split(_SEPARATOR)
        return cls(case, int(prefix), new_prefix, int(suffix), new_suffix)

    def __str__(self) -> str:
        return _SEPARATOR.join(map(str, self))

    def apply(self, word: str) -> str | None:
        """Return the lemma; None if the word is too short or nothing would remain."""
        if self.case == _REPLACE:
            return self.new_prefix
        form = word if self.case == "keep" else word.lower()
        if self.prefix + self.suffix > len(form):
            return None
        stem = form[self.prefix : len(form) - self.suffix]
        return _recased(f"{self.new_prefix}{stem}{self.new_suffix}", self.case) or None


NO_CHANGE = LemmaRule("keep")
"""The lemma is the word; this rule always applies."""


@lru_cache(maxsize=200_000)
def candidates(word: str, lemma: str) -> tuple[LemmaRule, ...]:
    """Return the rules that turn a word into a lemma; none if the lemma is unknown.

    For each change of case, the longest part that both have in common is kept, the first of several
    alike. The rule that replaces the word is the last.
    """
    if lemma == UNKNOWN_LEMMA and word != UNKNOWN_LEMMA:
        return ()
    edits = (_edit(word, lemma, case) for case in _CASES)
    rules = (*(edit for edit in edits if edit is not None), LemmaRule(_REPLACE, 0, lemma))
    return tuple(dict.fromkeys(rule for rule in rules if rule.apply(word) == lemma))


def count_rules(pairs: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Choose one rule for each word and lemma, and count the rules that are chosen.

    Of several candidates, the rule that fits most words of the data is chosen. So few rules cover
    the data, and a word at the beginning of a sentence has the rule of the word inside one. Of
    several that fit as many, the first of `candidates` is chosen.
    `NO_CHANGE` is always counted, with 0 if it was not chosen.

    Args:
        pairs: counts of words with their lemmas.
    """
    fitting: Counter[LemmaRule] = Counter()
    for (word, lemma), count in pairs.items():
        fitting.update(dict.fromkeys(candidates(word, lemma), count))
    counted = Counter({str(NO_CHANGE): 0})
    for (word, lemma), count in pairs.items():
        if rules := candidates(word, lemma):
            counted[str(max(rules, key=fitting.__getitem__))] += count
    return counted


def best_lemma(word: str, rules: Iterable[str]) -> str:
    """Return the lemma of the first rule that applies; the word if none does."""
    lemmas = (LemmaRule.parse(rule).apply(word) for rule in rules)
    return next((lemma for lemma in lemmas if lemma is not None), word)


def _edit(word: str, lemma: str, case: str) -> LemmaRule | None:
    """Return the rule that keeps the longest common part; None if there is none."""
    form = word if case == "keep" else word.lower()
    target = lemma if case in ("keep", "lower") else lemma.lower()
    if _recased(target, case) != lemma:
        return None
    matcher = SequenceMatcher(None, form, target, autojunk=False)
    start, new_start, size = matcher.find_longest_match()
    if not size:
        return None
    suffix = len(form) - start - size
    return LemmaRule(case, start, target[:new_start], suffix, target[new_start + size :])


def _recased(text: str, case: str) -> str:
    if case == "title":
        return text[:1].upper() + text[1:]
    return text.upper() if case == "upper" else text


def known_rules(
    words: Iterable[str], lemmas: Iterable[str], ids: Mapping[str, int]
) -> Iterator[int | None]:
    """Yield the id of the rule of each word: the most frequent in training; None if unseen.

    Args:
        words: of a sentence.
        lemmas: of the words.
        ids: of the rules, by frequency.
    """
    for word, lemma in zip(words, lemmas, strict=True):
        found = (ids.get(str(rule)) for rule in candidates(word, lemma))
        yield min((index for index in found if index is not None), default=None)
