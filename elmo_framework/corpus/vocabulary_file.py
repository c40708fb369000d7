"""Vocabulary files in the format of bilm-tf: one word per line, by falling frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.errors import DataError, shown

UNKNOWN_WORD = "<UNK>"
SPECIAL_WORDS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN_WORD)
"""The first three words of every vocabulary file."""

_FILLER = "!!!MAXTERMID"
_UNLISTABLE = frozenset((*SPECIAL_WORDS, _FILLER))
_FREQUENT = 1_000_000_000


def is_listable(word: str) -> bool:
    """Return whether a vocabulary file can list this word; special words are excluded."""
    return word == word.strip() and "\n" not in word and word not in _UNLISTABLE


def read_vocabulary_file(path: Path) -> list[str]:
    """Return the words of a file after the special ones, without lines `!!!MAXTERMID`.

    Raises:
        DataError: the special words are missing, or a word is duplicated.
    """
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        word = line.strip()
        if number <= len(SPECIAL_WORDS) and word != SPECIAL_WORDS[number - 1]:
            raise _no_special(path, number, word)
        if word in lines:
            message = f"duplicate word {word!r}, first in line {lines[word]}"
            raise DataError(message, path=path, line=number)
        if word and word != _FILLER:
            lines[word] = number
    if len(lines) < len(SPECIAL_WORDS):
        raise _no_special(path, len(lines) + 1, "")
    return list(lines)[len(SPECIAL_WORDS) :]


def as_counts(words: Sequence[str]) -> Counter[str]:
    """Return artificial counts that preserve the order of words, above any `min_count`."""
    return Counter({word: _FREQUENT - rank for rank, word in enumerate(words)})


def vocabulary_text(words: Sequence[str]) -> str:
    """Return the content of a file with the special words and others."""
    return "".join(f"{word}\n" for word in (*SPECIAL_WORDS, *words))


def _no_special(path: Path, number: int, word: str) -> DataError:
    return DataError(
        f"a vocabulary file begins with the lines {', '.join(SPECIAL_WORDS)}; found "
        f"{shown(word)} in place of {SPECIAL_WORDS[number - 1]}",
        path=path,
        line=number,
    )
