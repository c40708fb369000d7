"""Two sentences with a label."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A premise, a hypothesis, and optionally the label of their relation."""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str | None
