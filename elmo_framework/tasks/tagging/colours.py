"""Tagged sentences for a reader at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from rich.text import Text

from elmo_framework.data.tagging import spans

_STYLES = ("red", "green", "yellow", "blue", "magenta", "cyan")


def coloured(words: Sequence[str], tags: Sequence[str]) -> Text:
    """Return a sentence with its spans in brackets, `[Oslo LOC] is wet`.

    Where the tags are of no scheme, as parts of speech are, each word has its own: `is/VBZ`.
    """
    found = spans(tags)
    if not found and any(tag != "O" for tag in tags):
        pairs = (
            Text.assemble(word, ("/" + tag, _style(tag)))
            for word, tag in zip(words, tags, strict=True)
        )
        return Text(" ").join(pairs)
    parts: list[Text] = []
    place = 0
    for start, end, label in found:
        parts += map(Text, words[place:start])
        inside = " ".join(words[start:end])
        parts.append(Text.assemble(f"[{inside} ", (label, "bold"), "]", style=_style(label)))
        place = end
    return Text(" ").join([*parts, *map(Text, words[place:])])


def _style(label: str) -> str:
    """Return a colour that is the same for a label everywhere."""
    return _STYLES[crc32(label.encode()) % len(_STYLES)]
