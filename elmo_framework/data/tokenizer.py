"""Tokenizers: split raw text into sentences and words."""

from __future__ import annotations

import logging
import pkgutil
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, final

from elmo_framework.config.parse import parse
from elmo_framework.config.registry import Registrable, members
from elmo_framework.config.types import Default
from elmo_framework.errors import DataError, RunError, allowed, shown
from elmo_framework.io.extras import import_extra
from elmo_framework.io.files import cache_root

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

_RULES = {"@tokenizers": "spacy.Tokenizer.v1"}
_TOKENIZERS: dict[str, dict[str, Any]] = {
    # spaCy's default for these languages needs further packages; its trained pipelines for Korean
    # use the rules too. Words of pyvi, its default for Vietnamese, contain spaces.
    "ko": _RULES,
    "vi": _RULES,
}
_EXTRAS = {
    "ja": ("japanese", ("sudachipy", "sudachidict_core")),
    "th": ("thai", ("pythainlp",)),
}
"""The extra for a language, and the modules that it installs."""


class Tokenizer(Registrable, ABC):
    """Splits raw text."""

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a text, in order; by default the lines that are not blank."""
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [line for line in lines if line.split()]

    @abstractmethod
    def words(self, sentence: str) -> list[str]:
        """Return the words of a sentence, in order."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end (exclusive) of each word in characters.

        Raises:
            DataError: the tokenizer returned a word that is not in the text.
        """
        return character_offsets(text, self.words(text))


def character_offsets(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return the start and end (exclusive) of the words of a text, in order, in characters.

    Raises:
        DataError: a word is not in the text after the one before it.
    """
    offsets = []
    end = 0
    for word in words:
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
    """One sentence per line, each character a word: for text without spaces between words.

    Combining marks, such as the vowels above a Thai consonant, belong to the character before them.
    """

    def words(self, sentence: str) -> list[str]:
        words = list[str]()
        is_inside = False
        for character in sentence:
            if is_inside and unicodedata.category(character).startswith("M"):
                words[-1] += character
            elif is_inside := not character.isspace():
                words.append(character)
        return words


@final
@Tokenizer.register("add_tokens")
class AddingTokenizer(Tokenizer):
    """Adds the same words to each text, such as one for words without a counterpart to align to.

    Args:
        tokenizer: splits the text.
        start_tokens: words before the first.
        end_tokens: words after the last.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        start_tokens: Annotated[list[str], Default([])],
        end_tokens: Annotated[list[str], Default([])],
    ) -> None:
        self._tokenizer, self._start, self._end = tokenizer, start_tokens, end_tokens

    def sentences(self, text: str) -> list[str]:
        return self._tokenizer.sentences(text)

    def words(self, sentence: str) -> list[str]:
        return [*self._start, *self._tokenizer.words(sentence), *self._end]


@final
@Tokenizer.register("spacy")
class SpacyTokenizer(Tokenizer):
    """The rules of spaCy for a language, without a trained model.

    Japanese (`ja`) and Thai (`th`) need the extra `japanese` or `thai`.

    Args:
        language: the code of a spaCy language such as `en` or `de`; `xx` for general rules.
        segmenter: finds the words of Chinese (extra `chinese`); null for characters as words.

    Raises:
        ValueError: unknown language, or a segmenter for a language other than Chinese.
        RunError: the package for the language is not installed.
    """

    def __init__(self, language: str = "en", segmenter: Literal["jieba"] | None = None) -> None:
        if segmenter is not None and language != "zh":
            raise ValueError(f"segmenter {segmenter!r} is for Chinese ('zh'), not {language!r}")
        self._pipeline = _pipeline(language, segmenter)
        self._errors = _errors(language)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences, which end at punctuation marks; Thai has none.

        Raises:
            DataError: as `words`.
        """
        document = self._tokenize(text)
        document = self._pipeline.get_pipe("sentencizer")(document)
        sentences = (sentence.text.strip() for sentence in document.sents)
        return [sentence for sentence in sentences if sentence]

    def words(self, sentence: str) -> list[str]:
        """Return the words and the punctuation marks.

        Raises:
            DataError: the text has a lone surrogate, or is too long for SudachiPy (Japanese).
        """
        # Packages for some languages leave a no-break space at a word. spaCy creates a new string
        # per word; interning saves memory for millions of sentences.
        words = (token.text.strip() for token in self._tokenize(sentence))
        return [sys.intern(word) for word in words if word]

    def _tokenize(self, text: str) -> Doc:
        try:
            return self._pipeline.tokenizer(text)
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise DataError(f"lone surrogate {half!r} in {shown(text)}") from error
        except self._errors as error:
            raise DataError(f"{error} in {shown(text)}") from error


@cache  # a study checks many configs with the same tokenizer
def _pipeline(language: str, segmenter: str | None) -> Language:
    import spacy.lang  # slow, and few commands need it

    codes = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg]
    if language not in codes:
        raise ValueError(f"unknown spaCy language {language!r}; {allowed(language, codes)}")
    extra, modules = _EXTRAS.get(language, ("", ()))
    for module in modules:
        import_extra(module, extra)
    options = _TOKENIZERS.get(language, {})
    if segmenter == "jieba":
        _set_up_jieba()
        options = {"segmenter": segmenter}
    try:
        pipeline = spacy.blank(language, config={"nlp": {"tokenizer": options}})
    except ImportError as error:
        raise ValueError(f"spaCy cannot split {language!r} yet: {error}") from error
    pipeline.add_pipe("sentencizer")
    return pipeline


def _set_up_jieba() -> None:
    jieba = import_extra("jieba", "chinese")
    jieba.setLogLevel(logging.WARNING)  # otherwise it prints how it loads its dictionary
    # Its default is a fixed name in the folder of temporary files, which other users can write.
    folder = cache_root() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    jieba.dt.tmp_dir = str(folder)


def _errors(language: str) -> tuple[type[Exception], ...]:
    """Return the errors of the package for a language that are about the text."""
    if language != "ja":
        return ()
    error: type[Exception] = import_extra("sudachipy.errors", "japanese").SudachiError
    return (error,)
