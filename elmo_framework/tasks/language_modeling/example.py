"""A training example of a language model: one sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanguageModelingExample:
    """One sentence.

    Attributes:
        words: at least one.
    """

    words: tuple[str, ...]
