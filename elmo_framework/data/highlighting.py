"""Highlight labeled spans of a text with colors for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

from rich.text import Text

COLORS = ("red", "green", "yellow", "blue", "magenta", "cyan")


def color_of(label: str) -> str:
    """Return a color that depends on the label only."""
    return COLORS[crc32(label.encode()) % len(COLORS)]


def bracketed(
    words: Sequence[str],
    spans: Iterable[tuple[int, int, str]],
    piece: Callable[[str, str], Text],
) -> Text:
    """Format the spans of a text with `piece`.

    Args:
        words: of the text.
        spans: start, end (exclusive) and label; in order, without overlap.
        piece: formats the words of a span with its label.
    """
    parts: list[Text] = []
    previous_end = 0
    for start, end, label in spans:
        parts += map(Text, words[previous_end:start])
        parts.append(piece(" ".join(words[start:end]), label))
        previous_end = end
    return Text(" ").join([*parts, *map(Text, words[previous_end:])])
