"""What is classified."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """A text, and its class where that is known.

    Attributes:
        words: the words of the text.
        label: its class.
    """

    words: tuple[str, ...]
    label: str | None
