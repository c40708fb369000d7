"""A text with a label."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """The words of a text, and optionally its label."""

    words: tuple[str, ...]
    label: str | None
