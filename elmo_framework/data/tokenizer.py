"""The family of tokenizers: raw text to sentences to words."""

from __future__ import annotations

import pkgutil
import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, final

from elmo_framework.config.registry import Registrable
from elmo_framework.errors import DataError, allowed, shown

if TYPE_CHECKING:
    from spacy.language import Language


class Tokenizer(Registrable, ABC):
    """Splits raw text."""

    @abstractmethod
    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, in order."""

    @abstractmethod
    def words(self, sentence: str) -> list[str]:
        """Return the words of a sentence, in order."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the characters where each word begins and before which it ends.

        Raises:
            DataError: a word does not stand in the text as the tokenizer gives it.
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


@final
@Tokenizer.register("whitespace")
class WhitespaceTokenizer(Tokenizer):
    """One sentence a line, words between spaces: for text that is tokenized already."""

    def sentences(self, text: str) -> list[str]:
        """Return the lines that hold a word."""
        return [line for line in text.splitlines() if line.split()]

    def words(self, sentence: str) -> list[str]:
        """Return what stands between spaces."""
        return sentence.split()


@final
@Tokenizer.register("characters")
class CharacterTokenizer(Tokenizer):
    """One sentence a line, each character a word: for text without spaces between words."""

    def sentences(self, text: str) -> list[str]:
        """Return the lines that hold a character."""
        return [line for line in text.splitlines() if line.split()]

    def words(self, sentence: str) -> list[str]:
        """Return the characters, without spaces."""
        return [character for character in sentence if not character.isspace()]


@final
@Tokenizer.register("spacy")
class SpacyTokenizer(Tokenizer):
    """The rules of spaCy for a language; needs none of its trained models.

    Args:
        language: the code of a language that spaCy knows, as `en` or `de`; `xx` for rules that
            fit most.
    """

    def __init__(self, language: str = "en") -> None:
        self._pipeline = _pipeline(language)

    def sentences(self, text: str) -> list[str]:
        """Return what ends with a full stop, a question mark or the like."""
        sentences = (sentence.text.strip() for sentence in self._pipeline(text).sents)
        return [sentence for sentence in sentences if sentence]

    def words(self, sentence: str) -> list[str]:
        """Return the words and the punctuation marks.

        Raises:
            DataError: the text holds half a pair of what means one character together.
        """
        try:
            tokens = self._pipeline.tokenizer(sentence)
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise DataError(f"half a character, {half!r}, stands in {shown(sentence)}") from error
        # spaCy makes a string anew for each word; millions of pairs of sentences hold few.
        return [sys.intern(token.text) for token in tokens if not token.is_space]


def _pipeline(language: str) -> Language:
    import spacy.lang  # here, because it takes a second that few commands need

    known = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg]
    if language not in known:
        raise ValueError(f"{language!r} is no language of spaCy; {allowed(language, known)}")
    try:
        pipeline = spacy.blank(language)
    except ImportError as error:
        raise ValueError(f"spaCy cannot split {language!r} yet: {error}") from error
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = sys.maxsize  # the limit is for the trained models, which take memory
    return pipeline
