"""Guess the language of a sample of text by frequent words and by its script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from elmo_framework.data.scripts import letters_by_script
from elmo_framework.data.tokenizer import TokenizerConfig

_NUM_WORDS = 20_000
_MIN_RATIO = 0.04
"""Texts with fewer of the frequent words of a language are not taken for that language."""

_MIN_DIFFERENT = 3
"""Fewer different frequent words decide nothing: some are words or names of other languages."""

_FREQUENT: Mapping[str, str] = {
    "en": "the of and to in is that it was for with not this are",
    "de": "der die und das den nicht ist mit ein eine zu auf sich dem",
    "fr": "le la les et des est une dans pour que du au pas qui",
    "es": "el los las y que del una por con para se al es su",
    "it": "il di che la per una del non gli con sono della e è",
    "pt": "o os as e que do da um uma para com não em no",
    "nl": "de het een en van dat niet is op te zijn voor met",
    "sv": "och att det som en på är av för med den inte till",
    "pl": "i w nie na się z że do to jest jak po ale",
}
_WITHOUT_SPACES = ("Cjk", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")


def guess_language(sentences: Iterable[Sequence[str]]) -> str:
    """Return the code of a language of spaCy for tokenized text, or `characters` or `xx`.

    Args:
        sentences: words as written, not necessarily separated from punctuation.

    Returns:
        `characters` for scripts without spaces between words; `xx` for other scripts than Latin;
        `en` if nothing decides.
    """
    words = list(islice(chain.from_iterable(sentences), _NUM_WORDS))
    (script, _), *_ = letters_by_script(words).most_common(1) or [("Latin", 0)]
    if script in _WITHOUT_SPACES:
        return "characters"
    if script != "Latin":
        return "xx"
    counts = Counter(word.strip(".,;:!?\"'()").casefold() for word in words)
    hits = {
        code: Counter({word: counts[word] for word in frequent.split()})
        for code, frequent in _FREQUENT.items()
    }
    best = max(hits, key=lambda code: hits[code].total())
    num_different = len(+hits[best])
    is_clear = hits[best].total() >= _MIN_RATIO * len(words) and num_different >= _MIN_DIFFERENT
    return best if is_clear else "en"


def tokenizer_of(language: str) -> TokenizerConfig:
    """Return the config of the tokenizer for a result of `guess_language`, or a spaCy language."""
    if language == "characters":
        return "characters"
    return "spacy" if language == "en" else {"type": "spacy", "language": language}
