"""The readers of semantic roles in columns with brackets, and in lines."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple, final

from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.formats.columns import read_blocks, split_cells
from elmo_framework.data.formats.conll2012 import read_conll2012
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.text_files import parsed_lines
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.tagging import parse_tag
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.columns import propositions_of
from elmo_framework.tasks.srl.example import SrlExample, examples_of

_log = logging.getLogger(__name__)

_NONE = "-"


class PropositionReader(FileReader[SrlExample]):
    """Base class of the readers: one example for each predicate of a sentence.

    Args:
        skip_sentences_without_predicates: whether to skip them; otherwise each is one example
            without a marked predicate, in which every tag is O.
        max_sentence_length: skip sentences with more words; null for no limit. For training only:
            F1 should cover all sentences, so set a `validation_dataset_reader` without it.
    """

    example_type = SrlExample

    def __init__(
        self,
        skip_sentences_without_predicates: bool = False,
        max_sentence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.skip_sentences_without_predicates = skip_sentences_without_predicates
        self.max_sentence_length = max_sentence_length or inf

    def read_inputs(self, path: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the inputs of all files; if none of them marks a predicate, none is known."""
        if any(each.example.predicates for each in super().read_inputs(path)):
            yield from super().read_inputs(path)
            return
        for each in super().read_inputs(path):
            yield replace(each, example=replace(each.example, predicates=None))

    def examples(self, file: Path) -> Iterator[SrlExample]:
        num_skipped = 0
        for sentence in self.sentences(file):
            if len(sentence.words) > self.max_sentence_length:
                num_skipped += 1
                continue
            yield from examples_of(sentence, skip_empty=self.skip_sentences_without_predicates)
        if num_skipped:
            skipped, longest = plural(num_skipped, "sentence"), int(self.max_sentence_length)
            _log.info("%s: skipped %s of more than %s", file, skipped, plural(longest, "word"))

    @abstractmethod
    def sentences(self, file: Path) -> Iterator[SrlExample]:
        """Yield the sentences of a file, each once, with all of its predicates."""

    @abstractmethod
    def inputs(self, file: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the sentences of a file, each once; their arguments may be missing."""


@final
@DatasetReader.register("srl")
class SrlReader(PropositionReader):
    """Reads the columns of CoNLL-2012, the format of OntoNotes; each predicate is an example.

    The files of OntoNotes are in many folders: `train_data_path: "train/**/*gold_conll"`.

    Args:
        skip_sentences_without_predicates: whether to skip them; otherwise each is one example
            without a marked predicate, in which every tag is O, as in AllenNLP.
    """

    formats = (FileFormat.CONLL2012,)

    def sentences(self, file: Path) -> Iterator[SrlExample]:
        for sentence in read_conll2012(file):
            predicates = _predicates(sentence.framesets)
            propositions = propositions_of(
                sentence.predicates, predicates, path=file, first_line=sentence.first_line
            )
            yield SrlExample(sentence.words, propositions, targets=sentence.lemmas)

    def inputs(self, file: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the sentences of a file, each with its document and its part."""
        for sentence in read_conll2012(file):
            fields = {
                "document_id": sentence.document_id,
                "part": sentence.part,
                "framesets": list(sentence.framesets),
                "speakers": list(sentence.speakers),
                "arguments": list(map(list, sentence.predicates)),
            }
            predicates = _predicates(sentence.framesets)
            example = SrlExample(sentence.words, None, predicates, sentence.lemmas)
            yield PredictionInput(example, fields)


@final
@DatasetReader.register("conll2005")
class Conll2005Reader(PropositionReader):
    """Reads the columns of the CoNLL-2005 shared task; each predicate is an example.

    One word per line and a blank line after each sentence. The word is in the first column; the
    column of predicates is followed by one column of arguments for each.

    Args:
        target_column: the column of the predicates, from 0: a lemma, or `-`. It is
            7 in the files of the task: words, named entities, parts of speech, chunks, clauses,
            parse, senses, predicates.
    """

    formats = (FileFormat.COLUMNS,)

    def __init__(
        self,
        target_column: Count = 7,
        skip_sentences_without_predicates: bool = False,
        max_sentence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(skip_sentences_without_predicates, max_sentence_length, max_instances)
        self.target_column = target_column

    def sentences(self, file: Path) -> Iterator[SrlExample]:
        for rows, _ in read_blocks(file, min_width=self.target_column + 1):
            words, *columns = zip(*(row.columns for row in rows), strict=True)
            targets, *arguments = columns[self.target_column - 1 :]
            line = rows[0].line
            propositions = propositions_of(
                arguments, _predicates(targets), path=file, first_line=line
            )
            yield SrlExample(words, propositions, targets=targets)

    def inputs(self, file: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the sentences of a file, with its other columns as `column_1` and so on."""
        for rows, _ in read_blocks(file, min_width=self.target_column + 1):
            words, *columns = zip(*(row.columns for row in rows), strict=True)
            targets = columns[self.target_column - 1]
            fields = {f"column_{number}": list(cells) for number, cells in enumerate(columns, 1)}
            yield PredictionInput(SrlExample(words, None, _predicates(targets), targets), fields)


@final
@DatasetReader.register("deep_srl")
class DeepSrlReader(PropositionReader):
    """Reads one predicate per line: its position, the words, and their BIO tags (He et al. 2017).

        2 My cats love hats . ||| B-A0 I-A0 B-V B-A1 O

    Consecutive lines with the same words and increasing positions belong to one sentence.

    Args:
        skip_sentences_without_predicates: whether to skip lines with the position -1; otherwise
            each is one example without a marked predicate, in which every tag is O.
    """

    formats = (FileFormat.PROPOSITIONS,)

    def sentences(self, file: Path) -> Iterator[SrlExample]:
        return map(_sentence, _grouped(parsed_lines(file, _of_line)))

    def inputs(self, file: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the sentences of a file; a line may end before `|||`."""
        for lines in _grouped(parsed_lines(file, partial(_of_line, is_labeled=False))):
            places = tuple(line.place for line in lines if line.place >= 0)
            tags = [list(line.tags) for line in lines if line.place >= 0]
            example = SrlExample(lines[0].words, None, places)
            yield PredictionInput(example, {"tags": tags} if any(tags) else {})


def _predicates(cells: Sequence[str]) -> tuple[int, ...]:
    return tuple(place for place, cell in enumerate(cells) if cell != _NONE)


class _Line(NamedTuple):
    place: int
    words: tuple[str, ...]
    tags: tuple[str, ...]

    def continues(self, before: _Line) -> bool:
        return self.words == before.words and 0 <= before.place < self.place


def _grouped(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    group: list[_Line] = []
    for line in lines:
        if group and not line.continues(group[-1]):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _sentence(lines: Sequence[_Line]) -> SrlExample:
    propositions = (Proposition(line.place, line.tags) for line in lines if line.place >= 0)
    return SrlExample(lines[0].words, tuple(propositions))


def _of_line(text: str, *, is_labeled: bool = True) -> _Line:
    try:
        line = _parsed(text if is_labeled or "|||" in text else f"{text} |||")
        return _checked(line) if is_labeled else line
    except ValueError as error:
        raise ValueError(f"{error}: {text!r}") from error


def _parsed(line: str) -> _Line:
    before, bar, after = line.partition("|||")
    place, *words = split_cells(before) or ("",)
    if not bar or not words or not place.removeprefix("-").isdecimal():
        raise ValueError("expected the position of a predicate, the words, '|||' and the tags")
    predicate = int(place)
    if not -1 <= predicate < len(words):
        raise ValueError(f"predicate {predicate} is out of range for {plural(len(words), 'word')}")
    return _Line(predicate, tuple(words), split_cells(after))


def _checked(line: _Line) -> _Line:
    """Raise a ValueError unless there is one BIO tag for each word."""
    for tag in line.tags:
        if parse_tag(tag).prefix not in "BIO":
            raise ValueError(f"{tag!r} is not a tag of the scheme BIO")
    if len(line.tags) != len(line.words):
        words, tags = plural(len(line.words), "word"), plural(len(line.tags), "tag")
        raise ValueError(f"{words} with {tags}")
    if line.place < 0 and set(line.tags) != {"O"}:
        raise ValueError("the position -1 means no predicate, but there are arguments")
    return line
