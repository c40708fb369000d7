"""Tokenizers: split raw text into sentences and words."""

from __future__ import annotations

import pkgutil
import sys
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import Registrable, members
from elmo_framework.errors import DataError, RunError, allowed, shown

if TYPE_CHECKING:
    from spacy.language import Language


class Tokenizer(Registrable, ABC):
    """Splits raw text."""

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, in order; by default the lines that are not blank."""
        return [line for line in text.splitlines() if line.split()]

    @abstractmethod
    def words(self, sentence: str) -> list[str]:
        """Return the words of a sentence, in order."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end (exclusive) of each word in characters.

        Raises:
            DataError: the tokenizer returned a word that is not in the text.
        """
        offsets = []
        end = 0
        for word in self.words(text):
            start = text.find(word, end)
            if start < 0:
                raise DataError(f"the word {word!r} of the tokenizer is not in {shown(text)}")
            end = start + len(word)
            offsets.append((start, end))
        return offsets


TokenizerConfig: TypeAlias = str | dict[str, Any]
"""A tokenizer by its registered name, or with keys, as in a config."""


def build_tokenizer(wanted: Tokenizer | TokenizerConfig) -> Tokenizer:
    """Return a tokenizer, built from its config if it is not built yet.

    Raises:
        RunError: unknown tokenizer.
        ConfigError: its keys are wrong.
    """
    if isinstance(wanted, Tokenizer):
        return wanted
    tokenizers = members(Tokenizer)
    if isinstance(wanted, str) and wanted not in tokenizers:
        raise RunError(f"unknown tokenizer {wanted!r}; {allowed(wanted, tokenizers)}")
    return parse(Tokenizer, wanted, source="tokenizer").build()


@final
@Tokenizer.register("whitespace")
class WhitespaceTokenizer(Tokenizer):
    """One sentence per line, words separated by spaces: for tokenized text."""

    def words(self, sentence: str) -> list[str]:
        return sentence.split()


@final
@Tokenizer.register("characters")
class CharacterTokenizer(Tokenizer):
    """One sentence per line, each character a word: for text without spaces between words."""

    def words(self, sentence: str) -> list[str]:
        return [character for character in sentence if not character.isspace()]


@final
@Tokenizer.register("spacy")
class SpacyTokenizer(Tokenizer):
    """The rules of spaCy for a language, without a trained model.

    Args:
        language: the code of a spaCy language such as `en` or `de`; `xx` for general rules.
    """

    def __init__(self, language: str = "en") -> None:
        self._pipeline = _pipeline(language)

    def sentences(self, text: str) -> list[str]:
        sentences = (sentence.text.strip() for sentence in self._pipeline(text).sents)
        return [sentence for sentence in sentences if sentence]

    def words(self, sentence: str) -> list[str]:
        """Return the words and the punctuation marks.

        Raises:
            DataError: the text has a lone surrogate.
        """
        try:
            tokens = self._pipeline.tokenizer(sentence)
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise DataError(f"lone surrogate {half!r} in {shown(sentence)}") from error
        # spaCy creates a new string per word; interning saves memory for millions of sentences.
        return [sys.intern(token.text) for token in tokens if not token.is_space]


@cache  # a study checks many configs with the same tokenizer
def _pipeline(language: str) -> Language:
    import spacy.lang  # slow, and few commands need it

    codes = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg]
    if language not in codes:
        raise ValueError(f"unknown spaCy language {language!r}; {allowed(language, codes)}")
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        raise ValueError(f"spaCy cannot split {language!r} yet: {error}") from error
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = sys.maxsize  # the default is for the memory of trained models
    return pipeline
