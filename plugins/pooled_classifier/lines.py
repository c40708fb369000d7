"""Reading files that hold one classified text a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.tokenizer import Tokenizer

from .example import ClassifiedText


class Fields(NamedTuple):
    """What one line holds."""

    text: str
    label: str


def read_texts(
    path: Path,
    *,
    parse: Callable[[str], Fields],
    tokenizer: Tokenizer,
    num_header_lines: int = 0,
    max_instances: int | None = None,
) -> Iterator[ClassifiedText]:
    """Yield the texts of a file, or of the files of a folder or a pattern; blank lines are skipped.

    Args:
        path: where they are.
        parse: reads one line; a `ValueError` says what is wrong with it.
        tokenizer: splits a text into words.
        num_header_lines: how many lines at the top of each file are no texts.
        max_instances: how many texts are read at most; None for all.

    Raises:
        DataError: a line cannot be read, or a file holds no text.
    """
    texts = (
        text
        for file in data_files(path)
        for text in _texts(file, parse, tokenizer, num_header_lines)
    )
    return islice(texts, max_instances)


def _texts(
    file: Path, parse: Callable[[str], Fields], tokenizer: Tokenizer, num_header_lines: int
) -> Iterator[ClassifiedText]:
    is_empty = True
    for number, line in read_lines(file):
        if number <= num_header_lines or not line.strip():
            continue
        try:
            yield _text(parse(line), tokenizer)
        except ValueError as error:
            raise DataError(str(error), path=file, line=number) from error
        is_empty = False
    if is_empty:
        raise DataError("this file holds no text", path=file)


def _text(fields: Fields, tokenizer: Tokenizer) -> ClassifiedText:
    words = tuple(tokenizer.words(fields.text))
    if not words:
        raise ValueError(f"the text {fields.text!r} holds no word; remove the line")
    if not fields.label:
        raise ValueError("the label is empty")
    return ClassifiedText(words, fields.label)
