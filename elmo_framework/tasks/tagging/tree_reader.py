"""Read the constituents above words from bracketed trees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.text_files import parsed_lines
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.errors import shown
from elmo_framework.tasks.tagging.task import TaggedSentence

_BEGINNING = re.compile(r"\s*\(\s*[^\s()]*([\s(]|$)")
# Not \s: a word may have a no-break space, as in `(CD 10\u00a0000)`.
_PIECE = re.compile(r"\([ \t\r\n]*([^ \t\r\n()]*)|(\))|([^ \t\r\n()]+)")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}"}
_ROOTS = ("", "TOP", "ROOT")
_TRACE = "-NONE-"
_NO_CONSTITUENT = "NONE"


@final
@DatasetReader.register("constituents")
class ConstituentReader(FileReader[TaggedSentence]):
    """Reads the label of a constituent above each word, from one bracketed tree per line.

    This is the probing task of Blevins et al. (2018). In `(S (NP (DT the) (NN dog)) (VP (VBD
    barked)))` the parents of the words are NP, NP, VP, and their grandparents S, S, S. Functions
    and indices of labels (`NP-SBJ-1`) and traces are dropped.

    Args:
        level: 1 for the parent, 2 for the grandparent, and so on. A word with fewer constituents
            above it has the tag NONE.
    """

    example_type = TaggedSentence
    formats = (FileFormat.TREES,)

    def __init__(self, level: Count = 1, max_instances: Count | None = None) -> None:
        super().__init__(max_instances)
        self._level = level

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        return (self._sentence(paths) for paths in parsed_lines(file, word_paths) if paths)

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file, with the labels of their constituents."""
        for words, tags in ((each.words, each.tags or ()) for each in self.examples(file)):
            yield PredictionInput(TaggedSentence(words, None), {"tags": list(tags)})

    def recognizes(self, sample: FileSample) -> bool:
        # Every line, because a tree over several lines is an error and not text.
        lines = sample.filled_lines
        # A sentence may be in one pair of brackets.
        is_nested = any((line.count("("), line.count(")")) != (1, 1) for line in lines)
        return is_nested and all(map(_BEGINNING.match, lines))

    def _sentence(self, paths: list[tuple[str, list[str]]]) -> TaggedSentence:
        tags = tuple(
            labels[-self._level] if len(labels) >= self._level else _NO_CONSTITUENT
            for _, labels in paths
        )
        return TaggedSentence(tuple(word for word, _ in paths), tags)


def word_paths(line: str) -> list[tuple[str, list[str]]]:
    """Return the words of a tree, each with the labels of the constituents above it, root first.

    The part of speech and the root without a label are left out, and traces with the constituents
    that only they are in.

    Raises:
        ValueError: the line is not one tree.
    """
    labels: list[str] = []
    paths: list[tuple[str, list[str]]] = []
    has_label = False
    for number, piece in enumerate(_PIECE.finditer(line)):
        label, closing, word = piece.groups()
        if number and not labels:
            raise ValueError(f"something follows the tree: {shown(line)}")
        if word and not has_label:
            raise ValueError(f"the word {word!r} has no part of speech: {shown(line)}")
        if word and labels[-1] != _TRACE:
            above = [_category(each) for each in labels[:-1] if each not in _ROOTS]
            paths.append((_ESCAPES.get(word, word), above))
        elif label is not None:
            labels.append(label)
        elif closing:
            _close(labels, line)
        has_label = bool(label)
    if labels:
        raise ValueError(f"unclosed brackets: {shown(line)}")
    return paths


def _close(labels: list[str], line: str) -> None:
    if not labels:
        raise ValueError(f"a bracket closes nothing: {shown(line)}")
    labels.pop()


def _category(label: str) -> str:
    """Return a label without its functions and indices."""
    return re.split(r"[-=|]", label)[0] or label
