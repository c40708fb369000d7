"""Example of text classification."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """A text and its class.

    Attributes:
        words: the words of the text.
        label: the class; None if unknown.
    """

    words: tuple[str, ...]
    label: str | None
