"""Read sentences from CoNLL-U, and write predictions in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import final

from elmo_framework import DataError
from elmo_framework.config import Count
from elmo_framework.data import DatasetReader, FileReader, PredictionInput
from elmo_framework.data.formats import (
    ColumnBlock,
    FileFormat,
    Row,
    conllu_metadata,
    read_conllu,
)

from .sentence import Parse, UdSentence

_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_BREAKS = re.compile("[\t\r\n]+")  # would begin another cell or line
_FORM, _LEMMA, _UPOS, _FEATS, _HEAD, _DEPREL, _MISC = 1, 2, 3, 5, 6, 7, 9


@final
@DatasetReader.register("universal_dependencies")
class UniversalDependenciesReader(FileReader[UdSentence]):
    """Reads CoNLL-U: one word per line in ten tab-separated columns, comments after `#`.

    Words are those of the file (gold segmentation). Multiword tokens (`1-2`) and comments are kept
    for the output of `elmo predict`; empty nodes (`1.1`), which only the enhanced graph has, are
    skipped. XPOS and DEPS are not read.

    Args:
        max_instances: the maximum number of sentences to read; null for all.
    """

    example_type = UdSentence
    formats = (FileFormat.CONLLU,)

    def __init__(self, max_instances: Count | None = None) -> None:
        super().__init__(max_instances)

    def examples(self, file: Path) -> Iterator[UdSentence]:
        """Yield the sentences of a file; each must be a tree with one root."""
        for block in _blocks(file):
            yield _sentence(block, _parse(_words(block), file))

    def inputs(self, file: Path) -> Iterator[PredictionInput[UdSentence]]:
        """Yield the sentences of a file for `elmo predict`; only words are required."""
        for block in _blocks(file):
            columns = zip(*(row.columns for row in _words(block)), strict=True)
            fields = dict(zip(_COLUMNS, map(list, columns), strict=True))
            others = {name: fields[name] for name in _COLUMNS if name not in ("id", "form")}
            yield PredictionInput(_sentence(block, None), {**conllu_metadata(block), **others})


def conllu_lines(predictions: Iterable[tuple[Parse, UdSentence]]) -> Iterator[str]:
    """Write predictions as CoNLL-U, with the comments, multiword tokens and MISC of the input.

    XPOS and DEPS are `_`, since they are not predicted.
    """
    for parse, sentence in predictions:
        multiword = dict(sentence.multiword)
        lines = [*sentence.comments]
        for index, word in enumerate(sentence.words):
            if index + 1 in multiword:
                lines.append(multiword[index + 1])
            lines.append("\t".join(_cells(index, word, parse, sentence)))
        yield "".join(f"{line}\n" for line in lines) + "\n"


def _cells(index: int, word: str, parse: Parse, sentence: UdSentence) -> list[str]:
    misc = sentence.misc[index] if sentence.misc else "_"
    head, relation = str(parse.heads[index]), parse.deprels[index]
    analysis = [parse.lemmas[index], parse.upos[index], "_", parse.feats[index], head, relation]
    cells = [str(index + 1), word, *analysis, "_", misc]
    return [_BREAKS.sub(" ", cell) for cell in cells]


def _blocks(file: Path) -> Iterator[ColumnBlock]:
    return read_conllu(file, width=len(_COLUMNS), words_only=False)


def _words(block: ColumnBlock) -> list[Row]:
    return [row for row in block.rows if row.columns[0].isdecimal()]


def _sentence(block: ColumnBlock, parse: Parse | None) -> UdSentence:
    words = _words(block)
    multiword = tuple(
        (int(row.columns[0].partition("-")[0]), "\t".join(row.columns))
        for row in block.rows
        if "-" in row.columns[0]
    )
    return UdSentence(
        words=_cells_of(words, _FORM),
        parse=parse,
        comments=tuple(text for _, text in block.comments),
        multiword=multiword,
        misc=_cells_of(words, _MISC),
    )


def _parse(rows: Sequence[Row], file: Path) -> Parse:
    heads = tuple(_head(row, len(rows), file) for row in rows)
    _check_tree(heads, rows, file)
    return Parse(
        upos=_cells_of(rows, _UPOS),
        feats=_cells_of(rows, _FEATS),
        lemmas=_cells_of(rows, _LEMMA),
        heads=heads,
        deprels=_cells_of(rows, _DEPREL),
    )


def _cells_of(rows: Iterable[Row], column: int) -> tuple[str, ...]:
    return tuple(row.columns[column] for row in rows)


def _head(row: Row, num_words: int, file: Path) -> int:
    text = row.columns[_HEAD]
    if not (text.isascii() and text.isdecimal() and int(text) <= num_words):
        message = f"HEAD is {text!r}; expected the number of a word, from 0 to {num_words}"
        raise DataError(message, path=file, line=row.line)
    return int(text)


def _check_tree(heads: Sequence[int], rows: Sequence[Row], file: Path) -> None:
    """Raise DataError unless exactly one word has the head 0 and all others lead to it."""
    roots = [row for row, head in zip(rows, heads, strict=True) if head == 0]
    if len(roots) != 1:
        line = roots[1].line if roots else rows[0].line
        message = f"found {len(roots)} words with HEAD 0; a sentence has one root"
        raise DataError(message, path=file, line=line)
    for start, row in enumerate(rows, start=1):
        node = start
        for _ in rows:
            node = heads[node - 1] if node else 0
        if node:
            message = f"word {start} does not lead to the root: its heads form a cycle"
            raise DataError(message, path=file, line=row.line)
