"""Highlight labeled spans of a text with colors for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

from rich.text import Text

from elmo_framework.data.tagging import spans

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


def colored(words: Sequence[str], tags: Sequence[str]) -> Text:
    """Return a sentence with its spans in brackets, `[Oslo LOC] is wet`.

    If the tags do not mark spans, like parts of speech, each word is followed by its tag: `is/VBZ`.
    """
    labeled_spans = spans(tags)
    if not labeled_spans and any(tag != "O" for tag in tags):
        pairs = (
            Text.assemble(word, ("/" + tag, color_of(tag)))
            for word, tag in zip(words, tags, strict=True)
        )
        return Text(" ").join(pairs)
    return bracketed(words, labeled_spans, _piece)


def _piece(inside: str, label: str) -> Text:
    return Text.assemble(f"[{inside} ", (label, "bold"), "]", style=color_of(label))
