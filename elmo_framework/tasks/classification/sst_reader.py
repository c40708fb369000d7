"""Read the bracketed trees of the Stanford Sentiment Treebank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, final

from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.text_files import parsed_lines
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.classification.task import ClassifiedText

_PIECE = re.compile(r"\(([0-4])(?=[ (])|(\))|([^ ()]+)")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPES)))
_LABELS: dict[str, tuple[str | None, ...]] = {
    "5-class": ("0", "1", "2", "3", "4"),
    "3-class": ("0", "0", "1", "2", "2"),
    "2-class": ("0", "0", None, "1", "1"),
}
"""The label of each of the five classes; None to skip its texts."""


class Phrase(NamedTuple):
    """A node of a tree: its class from 0 to 4, and its words from `start` to before `end`."""

    sentiment: int
    start: int
    end: int


class Tree(NamedTuple):
    """A sentence and its phrases, the sentence itself first."""

    words: tuple[str, ...]
    phrases: tuple[Phrase, ...]


@final
@DatasetReader.register("sst_tokens")
class SstReader(FileReader[ClassifiedText]):
    r"""Reads one bracketed tree per line, `(3 (2 Good) (2 fun))`; a node's class is from 0 to 4.

    Args:
        granularity: the set of classes: all five; negative, neutral and positive as `0` to
            `2`; or negative and positive as `0` and `1`, without the neutral texts.
        use_subtrees: whether to read the phrases of a sentence as texts as well.
        min_phrase_length: skip phrases with fewer words; sentences are always read.
        unescape: whether to replace the escapes of the treebank, such as `-LRB-` and `\/`, by the
            characters.
    """

    example_type = ClassifiedText
    formats = (FileFormat.TREES,)

    def __init__(
        self,
        granularity: Literal["5-class", "3-class", "2-class"] = "5-class",
        use_subtrees: bool = False,
        min_phrase_length: Count = 1,
        unescape: bool = True,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._unescape = unescape
        self._labels = _LABELS[granularity]
        self._use_subtrees, self._min_phrase_length = use_subtrees, min_phrase_length

    def examples(self, file: Path) -> Iterator[ClassifiedText]:
        return (text for tree in self._trees(file) for text in self._texts(tree))

    def inputs(self, file: Path) -> Iterator[PredictionInput[ClassifiedText]]:
        """Yield the sentences of a file, without their phrases, whatever their class."""
        for tree in self._trees(file):
            sentiment = tree.phrases[0].sentiment
            label = self._labels[sentiment]
            fields = {"label": str(sentiment) if label is None else label}
            yield PredictionInput(ClassifiedText(tree.words, None), fields)

    def _trees(self, file: Path) -> Iterator[Tree]:
        return parsed_lines(file, partial(_tree, unescape=self._unescape))

    def _texts(self, tree: Tree) -> Iterator[ClassifiedText]:
        root, *inner = tree.phrases
        long = (phrase for phrase in inner if phrase.end - phrase.start >= self._min_phrase_length)
        for sentiment, start, end in (root, *(long if self._use_subtrees else ())):
            label = self._labels[sentiment]
            if label is not None:
                yield ClassifiedText(tree.words[start:end], label, whole=tree.words)


def read_tree(text: str, *, unescape: bool = True) -> Tree:
    """Read a bracketed tree.

    Args:
        text: of the tree.
        unescape: whether to replace escapes by the characters.

    Raises:
        ValueError: it is malformed.
    """
    pieces = list(_PIECE.finditer(text))
    if sum(len(piece[0]) for piece in pieces) != len(text) - text.count(" "):
        raise ValueError("a bracket is not followed by a class from 0 to 4")
    words: list[str] = []
    phrases: list[Phrase] = []
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        sentiment, closing, word = piece.groups()
        if not opened and place:
            raise ValueError(f"something follows the tree: {shown(text[piece.start() :])}")
        if sentiment is not None:
            opened.append(len(phrases))
            phrases.append(Phrase(int(sentiment), len(words), len(words)))
        elif not opened:
            raise ValueError(
                f"a tree begins with a bracket and a class, not with {shown(piece[0])}"
            )
        elif closing is not None:
            _close(phrases, opened.pop(), len(words))
        else:
            words.append(_ESCAPE.sub(lambda match: _ESCAPES[match[0]], word) if unescape else word)
    if opened or not phrases:
        raise ValueError(f"{plural(len(opened), 'unclosed bracket')}" if opened else "empty")
    return Tree(tuple(words), tuple(phrases))


def _close(phrases: list[Phrase], index: int, end: int) -> None:
    if phrases[index].start == end:
        raise ValueError("a phrase has no words")
    phrases[index] = phrases[index]._replace(end=end)


def _tree(line: str, *, unescape: bool) -> Tree:
    try:
        return read_tree(line.strip(), unescape=unescape)
    except ValueError as error:
        raise DataError(f"invalid tree: {error}: {shown(line)}") from error
