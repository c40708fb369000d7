"""Two sentences with a label."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A premise, a hypothesis, and how the second follows from the first where that is known."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str | None
