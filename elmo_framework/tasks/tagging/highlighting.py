"""Format tagged sentences for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from elmo_framework.data.highlighting import bracketed, color_of
from elmo_framework.data.tagging import spans


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
