"""Text with brackets and colours for a reader at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

from rich.text import Text

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")


def colour_of(label: str) -> str:
    """Return a colour that is the same for a label everywhere."""
    return COLOURS[crc32(label.encode()) % len(COLOURS)]


def bracketed(
    words: Sequence[str],
    spans: Iterable[tuple[int, int, str]],
    piece: Callable[[str, str], Text],
) -> Text:
    """Return a text in which some pieces are written in another way.

    Args:
        words: of the text.
        spans: where each piece begins, before which word it ends, and its label; in order, and
            none within another.
        piece: how the words of a piece are written, and its label.
    """
    parts: list[Text] = []
    place = 0
    for start, end, label in spans:
        parts += map(Text, words[place:start])
        parts.append(piece(" ".join(words[start:end]), label))
        place = end
    return Text(" ").join([*parts, *map(Text, words[place:])])
