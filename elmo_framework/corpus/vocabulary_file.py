"""Vocabulary files as bilm-tf reads them: a word a line, by falling frequency."""

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
_FREQUENT = 1_000_000_000


def read_vocabulary_file(path: Path) -> list[str]:
    """Return the words of a file after the special ones; lines `!!!MAXTERMID` hold none.

    Raises:
        DataError: the special words are not there, or a word comes twice.
    """
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        word = line.strip()
        if number <= len(SPECIAL_WORDS) and word != SPECIAL_WORDS[number - 1]:
            raise _no_special(path, number, word)
        if word in lines:
            message = f"the word {word!r} stands in line {lines[word]} already"
            raise DataError(message, path=path, line=number)
        if word and word != _FILLER:
            lines[word] = number
    if len(lines) < len(SPECIAL_WORDS):
        raise _no_special(path, len(lines) + 1, "")
    return list(lines)[len(SPECIAL_WORDS) :]


def as_counts(words: Sequence[str]) -> Counter[str]:
    """Return what stands for the counts of words whose order is given.

    The numbers fall by one from word to word, and no `min_count` is above them.
    """
    return Counter({word: _FREQUENT - place for place, word in enumerate(words)})


def vocabulary_text(words: Sequence[str]) -> str:
    """Return what a file with the special words and others holds."""
    return "".join(f"{word}\n" for word in (*SPECIAL_WORDS, *words))


def _no_special(path: Path, number: int, word: str) -> DataError:
    return DataError(
        f"a vocabulary file begins with the lines {', '.join(SPECIAL_WORDS)}, and {shown(word)} "
        f"stands where {SPECIAL_WORDS[number - 1]} belongs",
        path=path,
        line=number,
    )
