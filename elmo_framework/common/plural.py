"""Numbers with their nouns: "1 sentence", "1,200 sentences"."""

from __future__ import annotations

_SIBILANTS = ("s", "x", "ch", "sh")


def plural(number: int, noun: str) -> str:
    """Write a number and its noun.

    Args:
        number: how many.
        noun: one of them; regular, as all of ours are.
    """
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a regular noun."""
    return f"{noun}es" if noun.endswith(_SIBILANTS) else f"{noun}s"
