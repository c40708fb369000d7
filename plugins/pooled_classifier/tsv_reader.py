"""Classified texts in two columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.common.component import Default
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import Tokenizer

from .example import ClassifiedText
from .lines import Fields, read_texts


@final
@DatasetReader.register("labelled_text_tsv")
class TsvTextReader(DatasetReader[ClassifiedText]):
    """Reads a text and its label a line, with a tab between them.

    Args:
        tokenizer: what splits a text into words.
        has_header: whether the first line of a file names the columns.
        max_instances: how many texts are read; null for all.
    """

    example_type = ClassifiedText

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        has_header: bool = False,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self.tokenizer: Tokenizer = tokenizer
        self._has_header, self._max_instances = has_header, max_instances

    def read(self, path: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file, or of the files of a folder or a pattern."""
        return read_texts(
            path,
            parse=_parse,
            tokenizer=self.tokenizer,
            num_header_lines=1 if self._has_header else 0,
            max_instances=self._max_instances,
        )


def _parse(line: str) -> Fields:
    columns = line.split("\t")
    if len(columns) != 2:
        raise ValueError(f"found {len(columns)} columns; expected a text, a tab and a label")
    text, label = columns
    return Fields(text, label.strip())
