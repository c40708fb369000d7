"""Tagged sentences for a reader at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from elmo_framework.data.highlighting import bracketed, colour_of
from elmo_framework.data.tagging import spans


def coloured(words: Sequence[str], tags: Sequence[str]) -> Text:
    """Return a sentence with its spans in brackets, `[Oslo LOC] is wet`.

    Where the tags are of no scheme, as parts of speech are, each word has its own: `is/VBZ`.
    """
    found = spans(tags)
    if not found and any(tag != "O" for tag in tags):
        pairs = (
            Text.assemble(word, ("/" + tag, colour_of(tag)))
            for word, tag in zip(words, tags, strict=True)
        )
        return Text(" ").join(pairs)
    return bracketed(words, found, _piece)


def _piece(inside: str, label: str) -> Text:
    return Text.assemble(f"[{inside} ", (label, "bold"), "]", style=colour_of(label))
