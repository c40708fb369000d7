"""A translated config as text: with its comments, and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from elmo_framework.compat.allennlp.rules import Note
from elmo_framework.console import render_table
from elmo_framework.scaffold.rendering import as_jsonnet

_LENGTH_OF_LINE = 100
_FORMER = {"iterator": "data_loader", "validation_iterator": "validation_data_loader"}
_ORDER = ("differs", "added", "becomes", "dropped")


def summary(notes: Sequence[Note]) -> str:
    """Return a title and a table of what became of each key; those without a row are unchanged."""
    rows = [
        (note.path, note.kind, note.text) for kind in _ORDER for note in notes if note.kind == kind
    ]
    title = "written for AllenNLP; translated, with the other keys as they are:"
    return f"{title}\n\n{render_table(('key of AllenNLP', 'here', 'what'), rows)}"


def as_text(ours: Mapping[str, Any], notes: Sequence[Note], source: str) -> str:
    """Return a config in our style.

    Its comments name what differs in effect, what was dropped, and which defaults were added.
    """
    lines = [f"// Translated from {source}, which was written for AllenNLP.", "{"]
    for key, value in ours.items():
        lines += [line for note in notes if _block(note) == key for line in _comment(note)]
        lines.append(f"  {key}: {as_jsonnet(value, indent=2, first=len(key) + 3)},")
    rest = [note for note in notes if _block(note) not in ours]
    lines += [line for note in rest for line in _comment(note)]
    return "\n".join([*lines, "}", ""])


def _block(note: Note) -> str:
    first = note.path.partition(".")[0]
    return _FORMER.get(first, first)


def _comment(note: Note) -> list[str]:
    if note.kind == "becomes":
        return []
    text = " ".join(f"{note.path}: {note.kind}: {note.text}".split())
    mark = "  // "
    return [f"{mark}{line}" for line in wrap(text, _LENGTH_OF_LINE - len(mark))]
