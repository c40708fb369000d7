"""Warn about text in a script that a biLM was not trained on."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import final

_log = logging.getLogger(__name__)

_MIN_RATIO = 0.05
"""Scripts with a lower ratio of the letters of a vocabulary do not count as trained on."""

_MIN_LETTERS, _MAX_LETTERS = 50, 20_000
"""Number of letters before a warning, and after which checking stops."""

_NUM_WORDS = 50_000


@final
class ScriptCheck:
    """Warns once if most letters of the input of a biLM are in scripts unknown to it."""

    def __init__(self, trained_scripts: frozenset[str], name: str) -> None:
        self._trained_scripts, self._name = trained_scripts, name
        self._counts: Counter[str] = Counter()
        self._is_done = not trained_scripts

    def read(self, sentences: Iterable[Sequence[str]]) -> None:
        if self._is_done:
            return
        self._counts.update(letters_by_script(word for words in sentences for word in words))
        total = self._counts.total()
        unknown = Counter(
            {name: n for name, n in self._counts.items() if name not in self._trained_scripts}
        )
        self._is_done = total >= _MAX_LETTERS
        if total >= _MIN_LETTERS and 2 * unknown.total() > total:
            self._is_done = True
            (script, _), *_ = unknown.most_common(1)
            _log.warning(
                "%.0f %% of the letters are not %s, which the biLM %s was trained on, most of them "
                "%s: its vectors for such words mean little; use a biLM of that language",
                100 * unknown.total() / total,
                " or ".join(sorted(self._trained_scripts)),
                self._name,
                script,
            )


def vocabulary_scripts(path: Path) -> frozenset[str]:
    """Return the scripts of a vocabulary file with one word per line; none if it is unreadable."""
    try:
        with path.open(encoding="utf-8") as file:
            counts = letters_by_script(line.strip() for line in islice(file, _NUM_WORDS))
    except (OSError, UnicodeDecodeError):
        return frozenset()
    min_count = _MIN_RATIO * counts.total()
    return frozenset(script for script, count in counts.items() if count >= min_count)


def letters_by_script(words: Iterable[str]) -> Counter[str]:
    """Count letters by the first word of their Unicode names, such as `Latin` or `Cyrillic`."""
    counts: Counter[str] = Counter()
    for letter, count in Counter(letter for word in words for letter in word).items():
        if script := _script(letter):
            counts[script] += count
    return counts


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0].title() if letter.isalpha() else ""
