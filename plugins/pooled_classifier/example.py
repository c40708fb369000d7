"""What is classified, and what is said of it."""

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


@dataclass(frozen=True, slots=True)
class Classification:
    """What the classifier says of a text.

    Attributes:
        label: the most probable class.
        probabilities: of each class.
    """

    label: str
    probabilities: dict[str, float]
