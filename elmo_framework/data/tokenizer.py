"""The family of tokenizers: raw text to sentences to words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from elmo_framework.common.registry import Registrable


class Tokenizer(Registrable, ABC):
    """Splits raw text."""

    @abstractmethod
    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, in order."""

    @abstractmethod
    def words(self, sentence: str) -> list[str]:
        """Return the words of a sentence, in order."""


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
