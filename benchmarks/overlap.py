"""How many sentences of evaluation sets stand in a training text.

Both are compared without regard to how they were cut into words or sentences: in lower case,
letters and digits alone, nothing between words. `I do n't -- know .` is `idontknow`. A sentence
is found where it begins and ends with a word of the training text; it may be a part of a line
there, or reach from one line into the next. Only sentences are looked for that have enough words
with a letter or a digit, and equal ones of a file are counted once.

A file is named as PATH, or as FORMAT:PATH where the end of its name does not tell what it holds:

    lines      a sentence a line, words between spaces (unless another format is told)
    columns    CoNLL: a word a line, in its first column; in the fourth of CoNLL-2012, whose files
               begin with `#begin document` (.conll, .gold_conll)
    conllu     Universal Dependencies (.conllu)
    records    JSON objects or a table: `text`, or `sentence1` and `sentence2`, or `sentence_A`
               and `sentence_B`, each taken as one sentence (.jsonl, .csv, .tsv)
    squad      SQuAD: its passages, cut after [.!?] with a space behind, and so also after
               abbreviations (.json)
    trees      a bracketed tree a line (.mrg)
    corpus     a part of a corpus that `elmo prepare` made (a folder)

The training text is read once, block by block; the evaluation sentences are held in memory.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, final

from measuring import say

from elmo_framework.data.formats.columns import read_sentences
from elmo_framework.data.formats.conll2012 import read_conll2012
from elmo_framework.data.formats.records import read_records
from elmo_framework.data.formats.text_files import read_lines
from elmo_framework.tasks.language_modeling.reader import PreparedCorpusReader
from elmo_framework.tasks.tagging.reader import (
    UniversalDependenciesPosReader,
)

Sentence = Sequence[str]

_TEXTS = ("text", "sentence1", "sentence2", "sentence_A", "sentence_B")
_LEAF = re.compile(r"\(([^\s()]+) ([^\s()]+)\)")
_TRACE = "-NONE-"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BRACKET = re.compile("-[LR][RSC]B-")
_BLOCK_WORDS = 100_000


def main() -> int:
    """Read the evaluation sets, look for their sentences, and report."""
    arguments = _arguments()
    sets = {
        str(file.path): distinct_sentences(file.sentences(), arguments.min_length)
        for file in arguments.evaluation
    }
    search = Search((text for held in sets.values() for text in held), arguments.min_length)
    found = {text for file in arguments.texts for text in search.found_in(file.sentences())}
    for name, held in sets.items():
        common = [sentence for text, sentence in held.items() if text in found]
        share = len(common) / max(1, len(held))
        say(f"{name}: {len(held):,} sentences, {len(common):,} found, {share:.2%}")
        for sentence in common[: arguments.show]:
            say(f"    {sentence}")
    return 0


@cache
def normalized(word: str) -> str:
    """Return the letters and digits of a word in lower case; a bracket that is spelt out has none.

    Kept for each different word.
    """
    return "" if _BRACKET.fullmatch(word) else "".join(filter(str.isalnum, word.lower()))


def distinct_sentences(sentences: Iterable[Sentence], min_length: int) -> dict[str, str]:
    """Return the different sentences as they are looked for, and how each is written.

    Args:
        sentences: of one file.
        min_length: how many words with a letter or a digit a sentence must have.
    """
    distinct: dict[str, str] = {}
    for sentence in sentences:
        words = list(filter(None, map(normalized, sentence)))
        if len(words) >= min_length:
            distinct.setdefault("".join(words), " ".join(sentence))
    return distinct


@final
class Search:
    """Looks for sentences in texts.

    Args:
        sentences: normalized.
        min_length: how many characters each has at least.
    """

    def __init__(self, sentences: Iterable[str], min_length: int) -> None:
        self._start_length = min_length
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)
        for sentence in dict.fromkeys(sentences):
            self._by_start[sentence[:min_length]].append(sentence)
        self._longest = max(
            (len(held) for own in self._by_start.values() for held in own), default=0
        )

    def found_in(self, lines: Iterable[Sentence]) -> Iterator[str]:
        """Yield the sentences that stand in a text, those that come often several times."""
        words: list[str] = []
        for line in lines:
            words.extend(filter(None, map(normalized, line)))
            if len(words) >= _BLOCK_WORDS + self._longest:
                yield from self._found_in_block(words)
                # No sentence has more words than characters, so none is lost between two blocks.
                words = words[-self._longest :]
        yield from self._found_in_block(words)

    def _found_in_block(self, words: Sequence[str]) -> Iterator[str]:
        text = "".join(words)
        borders = list(accumulate(map(len, words), initial=0))
        for begin in borders:
            for sentence in self._by_start.get(text[begin : begin + self._start_length], ()):
                end = begin + len(sentence)
                if text.startswith(sentence, begin) and borders[bisect_left(borders, end)] == end:
                    yield sentence


def _lines(path: Path) -> Iterator[Sentence]:
    return (line.split() for _, line in read_lines(path))


def _columns(path: Path) -> Iterator[Sentence]:
    _, first = next(read_lines(path), (1, ""))
    if first.startswith("#begin document"):
        return (sentence.words for sentence in read_conll2012(path))
    return ([row.columns[0] for row in rows] for rows in read_sentences(path))


def _conllu(path: Path) -> Iterator[Sentence]:
    return (sentence.words for sentence in UniversalDependenciesPosReader().read(path))


def _records(path: Path) -> Iterator[Sentence]:
    for record in read_records(path):
        for name in _TEXTS:
            if name in record.values:
                yield record.text(name).split()


def _passages(path: Path) -> Iterator[Sentence]:
    for article in json.loads(path.read_bytes())["data"]:
        for paragraph in article["paragraphs"]:
            for sentence in _SENTENCE_END.split(paragraph["context"]):
                yield sentence.split()


def _trees(path: Path) -> Iterator[Sentence]:
    for _, line in read_lines(path):
        yield [word for label, word in _LEAF.findall(line) if label != _TRACE]


def _corpus(path: Path) -> Iterator[Sentence]:
    return (example.words for example in PreparedCorpusReader().read(path))


_FORMATS: Mapping[str, Callable[[Path], Iterator[Sentence]]] = {
    "lines": _lines,
    "columns": _columns,
    "conllu": _conllu,
    "records": _records,
    "squad": _passages,
    "trees": _trees,
    "corpus": _corpus,
}
_SUFFIXES: Mapping[str, str] = {
    ".conll": "columns",
    ".gold_conll": "columns",
    ".conllu": "conllu",
    ".jsonl": "records",
    ".csv": "records",
    ".tsv": "records",
    ".json": "squad",
    ".mrg": "trees",
}


@final
class TextFile(NamedTuple):
    """A file and what it holds.

    Attributes:
        path: of the file, or of the folder of a corpus's part.
        format: a key of the formats.
    """

    path: Path
    format: str

    @classmethod
    def named(cls, name: str) -> TextFile:
        """Return what PATH or FORMAT:PATH means.

        Raises:
            ArgumentTypeError: there is no such file.
        """
        prefix, colon, rest = name.partition(":")
        is_told = bool(colon) and prefix in _FORMATS
        path = Path(rest if is_told else name)
        if not path.exists():
            formats = ", ".join(_FORMATS)
            raise ArgumentTypeError(f"{name!r} is no file; expected PATH or one of {formats}:PATH")
        told = "corpus" if path.is_dir() else _SUFFIXES.get(path.suffix, "lines")
        return cls(path, prefix if is_told else told)

    def sentences(self) -> Iterator[Sentence]:
        """Yield the words of each sentence."""
        return _FORMATS[self.format](self.path)


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Count evaluation sentences that stand in training text.")
    parser.add_argument("texts", type=TextFile.named, nargs="+", metavar="TEXT")
    parser.add_argument(
        "--evaluation", type=TextFile.named, nargs="+", required=True, metavar="FILE"
    )
    parser.add_argument(
        "--min-length",
        type=int,
        default=8,
        help="words that a sentence must have (8); a few are slow",
    )
    parser.add_argument("--show", type=int, default=3, help="how many found ones are printed (3)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
