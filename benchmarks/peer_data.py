"""Pieces of real data sets, for what is compared with AllenNLP.

Nothing here imports the package or torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class _Source(NamedTuple):
    """A data set.

    Attributes:
        file: below the folder of the data sets.
        cut: returns the beginning of its text, with a number of examples or a few more.
    """

    file: str
    cut: Callable[[str, int], str]


def write_piece(kind: str, data: Path, number: int, file: Path) -> None:
    """Write the first examples of the data of a model.

    Args:
        kind: the type of the model.
        data: the folder of the data sets.
        number: of examples; the file may have a few more, as sentences and passages are whole.
        file: the one to write.
    """
    source = _SOURCES[kind]
    text = (data / source.file).read_text(encoding="utf-8")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source.cut(text, number), encoding="utf-8")


def piece_name(kind: str) -> str:
    """Return a name with the suffix that readers expect, and for `srl` in a folder of its own."""
    return f"{kind}/data{Path(_SOURCES[kind].file).suffix}"


def _lines(text: str, number: int) -> str:
    return "".join(text.splitlines(keepends=True)[:number])


def _pairs(text: str, number: int) -> str:
    """Return pairs with a label: a `-` marks those whose annotators disagree."""
    lines = text.splitlines(keepends=True)
    return "".join([line for line in lines if '"gold_label": "-"' not in line][:number])


def _sentences(text: str, number: int) -> str:
    blocks = (block for block in text.split("\n\n") if not block.startswith("-DOCSTART-"))
    return "\n\n".join([*blocks][:number]) + "\n\n"


def _propositions(text: str, number: int) -> str:
    """Return sentences with so many predicates; a sentence without one is an example too."""
    sentences, num_examples = list[str](), 0
    for block in text.split("\n\n"):
        if num_examples >= number:
            break
        rows = [line.split() for line in block.splitlines() if line and line[0] != "#"]
        if rows:
            sentences.append("\n".join(line for line in block.splitlines() if line[0] != "#"))
            num_examples += max(1, len(rows[0]) - _COLUMNS_OF_NO_PREDICATE)
    return "\n\n".join(sentences) + "\n\n"


_COLUMNS_OF_NO_PREDICATE = 12


def _documents(text: str, number: int) -> str:
    return "".join(re.split(r"(?m)^(?=#begin)", text)[1 : 1 + number])


def _questions(text: str, number: int) -> str:
    """Return one article with the first passages, and at most three questions about each."""
    passages, num_questions = [], 0
    for article in json.loads(text)["data"]:
        for passage in article["paragraphs"]:
            if num_questions < number:
                questions = passage["qas"][: min(_QUESTIONS, number - num_questions)]
                passages.append({**passage, "qas": questions})
                num_questions += len(questions)
    return json.dumps({"version": "1.1", "data": [{"title": "piece", "paragraphs": passages}]})


_QUESTIONS = 3

_TAGS = _Source("conll2003/valid.txt", _sentences)
_PAIRS = _Source("snli/snli_1.0_dev.jsonl", _pairs)
_TEXTS = _Source("sst/dev.txt", _lines)
_SOURCES = {
    "crf_tagger": _TAGS,
    "simple_tagger": _TAGS,
    "srl": _Source("ewt/srl/dev.gold_conll", _propositions),
    "esim": _PAIRS,
    "decomposable_attention": _PAIRS,
    "bcn": _TEXTS,
    "basic_classifier": _TEXTS,
    "bidaf": _Source("squad/dev-v1.1-half.json", _questions),
    "coref": _Source("gum/conll2012_ontogum/dev.conll", _documents),
    "constituency_parser": _Source("ewt/trees/dev.mrg", _lines),
}
KINDS = tuple(_SOURCES)
"""The types of models that both have."""
