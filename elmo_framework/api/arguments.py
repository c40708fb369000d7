"""Checks of the arguments that a program passes: lists of words, never bare strings; `state`.

A string is a sequence of strings too, so each of its letters would be read as a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from elmo_framework.data.tokenizer import Tokenizer, TokenizerConfig, build_tokenizer
from elmo_framework.errors import allowed, shown
from elmo_framework.layers.carried_state import CarriedState

_STATES = ("reset", "carry")

WordSplitter: TypeAlias = Tokenizer | TokenizerConfig | Callable[[str], Sequence[str]]
"""Splits a string into words: a tokenizer, its registered name or config, or a function."""


def require_words(sentence: Sequence[str], *, name: str = "a sentence") -> Sequence[str]:
    """Return a sentence that is a list of words; messages call it `name`.

    Raises:
        TypeError: it is a string or an iterator, or one of its words is no string.
    """
    if isinstance(sentence, str):
        raise TypeError(
            f"{name} is a list of words, not the string {shown(sentence)}; "
            f"pass {shown(sentence.split())}"
        )
    if isinstance(sentence, Iterator):  # the check would use it up
        raise TypeError(f"{name} is {shown(sentence)}; expected a list of words")
    for number, word in enumerate(sentence, start=1):
        if not isinstance(word, str):
            raise TypeError(f"word {number} of {name} is {shown(word)}; expected a string")
    return sentence


def require_sentences(sentences: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return sentences of which each is a list of words.

    Raises:
        TypeError: they are one string or an iterator, or a sentence among them is not a list of
            words.
    """
    require_list(sentences)
    if isinstance(sentences, Iterator):
        raise TypeError(f"expected a list of sentences, not {shown(sentences)}")
    for number, sentence in enumerate(sentences, start=1):
        require_words(sentence, name=f"sentence {number}")
    return sentences


def require_list(sentences: object) -> None:
    """Refuse one string in place of several sentences.

    Raises:
        TypeError: it is one.
    """
    if isinstance(sentences, str | bytes):
        raise TypeError(f"expected a list of sentences, not the string {shown(sentences)} alone")


def split_texts(
    texts: Sequence[str | Sequence[str]], tokenizer: WordSplitter
) -> list[Sequence[str]]:
    """Return the words of each text: of a string, those of the tokenizer.

    Raises:
        TypeError: `texts` is one string, or a text is neither a string nor a list of words.
        RunError: unknown tokenizer.
        ConfigError: the keys of the tokenizer are wrong.
    """
    require_list(texts)
    split = tokenizer if callable(tokenizer) else build_tokenizer(tokenizer).words
    words = list[Sequence[str]]()
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str | list | tuple):
            raise TypeError(f"text {number} is {shown(text)}; expected a string or a list of words")
        of_text = split(text) if isinstance(text, str) else text
        of_text = list(of_text) if isinstance(of_text, Iterator) else of_text
        words.append(require_words(of_text, name=f"text {number}"))
    return words


def carried_for(state: Literal["reset", "carry"]) -> CarriedState | None:
    """Return what keeps the states of rows; None for `reset`.

    Raises:
        ValueError: `state` is something else.
    """
    if state not in _STATES:
        raise ValueError(f"state is {state!r}; {allowed(state, _STATES)}")
    return CarriedState() if state == "carry" else None


def require_carried(carried: CarriedState | None) -> None:
    """Refuse to warm up where nothing is carried.

    Raises:
        ValueError: `state` is `reset`.
    """
    if carried is None:
        raise ValueError("warm_up needs state='carry'; with state='reset' nothing is carried")
