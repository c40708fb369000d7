"""What a language model learns from: sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanguageModelingExample:
    """One sentence.

    Attributes:
        words: at least one.
    """

    words: tuple[str, ...]
