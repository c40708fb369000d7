"""Constituency trees: constituents of a sentence, read from brackets and written as brackets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

from elmo_framework import DataError
from elmo_framework.config import Count
from elmo_framework.data import DatasetReader, FileReader, PredictionInput
from elmo_framework.data.formats import FileFormat, FileSample, nonblank_lines

# Not \s: a word may have a no-break space, as in `(CD 10\u00a0000)`.
_BLANK, _NAME = r"[ \t\r\n]", r"[^ \t\r\n()]"
_PIECE = re.compile(
    rf"\({_BLANK}*({_NAME}+){_BLANK}+({_NAME}+){_BLANK}*\)|\({_BLANK}*({_NAME}*)|(\))|{_NAME}+"
)
_BRACKETS = ("-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-")
_PARENTHESES = dict(zip(_BRACKETS, "(){}[]", strict=True))
_ESCAPES = {character: escape for escape, character in _PARENTHESES.items()}
_ROOTS = ("", "TOP", "ROOT", "VROOT", "S1")
_TRACE = "-NONE-"
_UNKNOWN_TAG = "XX"


class Constituent(NamedTuple):
    """A labeled span of words.

    Attributes:
        start: its first word, from 0.
        end: the word after its last.
        label: its category.
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The analysis of a sentence.

    Attributes:
        constituents: of at least one word, a parent before its children.
        tags: the part of speech of each word; empty if unknown.
    """

    constituents: tuple[Constituent, ...]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """A sentence, and its tree or its parts of speech.

    Attributes:
        words: of the sentence.
        tree: None if unknown.
        input_tags: the parts of speech that come without a tree; empty if unknown.
    """

    words: tuple[str, ...]
    tree: Tree | None
    input_tags: tuple[str, ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of each word; empty if unknown."""
        return self.input_tags if self.tree is None else self.tree.tags


@final
@DatasetReader.register("ptb_trees")
class TreeReader(FileReader[ParsedSentence]):
    """Reads bracketed trees, as of the Penn Treebank; a tree may have several lines.

    Functions and indices of labels (`NP-SBJ-1`), traces, and the root without a category are left
    out.

    Args:
        convert_parentheses: whether `-LRB-` and the like become parentheses in words.
    """

    example_type = ParsedSentence
    formats = (FileFormat.TREES,)

    def __init__(
        self, convert_parentheses: bool = False, max_instances: Count | None = None
    ) -> None:
        super().__init__(max_instances)
        self.convert_parentheses = convert_parentheses

    def recognizes(self, sample: FileSample) -> bool:
        """Return whether a file begins with a bracket, as those of the Penn Treebank do."""
        filled = (line.strip() for line in sample.lines if line.strip())
        return next(filled, "").startswith("(")

    def examples(self, file: Path) -> Iterator[ParsedSentence]:
        for number, text in _bracketed(file):
            try:
                words, tree = parse_tree(text)
            except ValueError as error:
                raise DataError(str(error), path=file, line=number) from error
            if self.convert_parentheses:
                words = tuple(_PARENTHESES.get(word, word) for word in words)
            if words:
                yield ParsedSentence(words, tree)

    def inputs(self, file: Path) -> Iterator[PredictionInput[ParsedSentence]]:
        """Yield the sentences with the parts of speech of their trees."""
        for example in self.examples(file):
            yield PredictionInput(ParsedSentence(example.words, None, example.tags), {})


def _bracketed(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the text of each tree and its first line."""
    lines: list[str] = []
    first = depth = 0
    for number, line in nonblank_lines(file):
        first = number if not lines else first
        lines.append(line)
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield first, " ".join(lines)
            lines, depth = [], 0
    if lines:
        raise DataError("the brackets of this tree are not closed", path=file, line=first)


def parse_tree(text: str) -> tuple[tuple[str, ...], Tree]:
    """Return the words and the constituents of a bracketed tree.

    Raises:
        ValueError: the text is not one tree.
    """
    pairs: list[tuple[str, str]] = []  # parts of speech and words
    constituents: list[Constituent] = []
    opened: list[tuple[str, int, int]] = []  # label, first word, place among the constituents
    for number, piece in enumerate(_PIECE.finditer(text)):
        tag, word, label, closing = piece.groups()
        if number and not opened:
            raise ValueError(f"{piece[0]!r} follows the tree")
        if word:
            pairs += [(tag, word)] if tag != _TRACE else []
        elif label is not None:
            opened.append((label, len(pairs), len(constituents)))
        elif closing and opened:
            label, start, place = opened.pop()
            if start < len(pairs) and label not in _ROOTS:
                constituents.insert(place, Constituent(start, len(pairs), _category(label)))
        else:
            raise ValueError(f"expected '(TAG WORD)' or '(LABEL ...)', found {piece[0]!r}")
    if opened:
        raise ValueError("the brackets of this tree are not closed")
    tags, words = zip(*pairs, strict=True) if pairs else ((), ())
    return tuple(words), Tree(tuple(constituents), tuple(tags))


def _category(label: str) -> str:
    """Return a label without its functions and indices."""
    return re.split(r"[-=|]", label)[0] or label


def chains(constituents: Iterable[Constituent]) -> dict[tuple[int, int], str]:
    """Return the labels of each span from the top, joined by `-`: `S-VP` is a VP within an S."""
    labels: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in constituents:
        labels[start, end].append(label)
    return {span: "-".join(each) for span, each in labels.items()}


def constituents_of(spans: Mapping[tuple[int, int], str]) -> tuple[Constituent, ...]:
    """Return the constituents of spans that do not cross; the reverse of `chains`."""
    ordered = sorted(spans.items(), key=lambda item: (item[0][0], -item[0][1]))
    return tuple(Constituent(*span, label) for span, chain in ordered for label in chain.split("-"))


def tree_lines(
    predictions: Iterable[tuple[Sequence[Constituent], ParsedSentence]],
) -> Iterator[str]:
    """Write one bracketed tree per line, as EVALB reads it.

    Parts of speech are those of the input, or `XX`.
    """
    for constituents, sentence in predictions:
        yield f"{as_brackets(constituents, sentence)}\n"


def as_brackets(constituents: Sequence[Constituent], sentence: ParsedSentence) -> str:
    """Return a tree in brackets, within `(TOP ...)`."""
    words, tags = sentence.words, sentence.tags
    begun: defaultdict[int, str] = defaultdict(str)
    ended: defaultdict[int, int] = defaultdict(int)
    for start, end, label in constituents:
        begun[start] += f"({label} "
        ended[end] += 1
    pieces = [
        f"{begun[index]}({_one_piece(tag)} {_one_piece(word)}){')' * ended[index + 1]}"
        for index, (word, tag) in enumerate(
            zip(words, tags or (_UNKNOWN_TAG,) * len(words), strict=True)
        )
    ]
    return f"(TOP {' '.join(pieces)})"


def _one_piece(text: str) -> str:
    """Replace what would end a word or a tag: brackets by their names, and blanks."""
    escaped = "".join(_ESCAPES.get(each, each) for each in text)
    return re.sub(f"{_BLANK}+", "_", escaped) or "_"
