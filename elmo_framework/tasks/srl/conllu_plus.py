"""Read semantic roles from CoNLL-U Plus, the format of the Universal Proposition Banks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import final

from elmo_framework.data.formats.columns import (
    ColumnBlock,
    columns_of,
    conllu_metadata,
    read_conllu,
)
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.text_files import error_context, read_lines
from elmo_framework.data.inputs import PredictionInput, other_fields
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import LabeledSpan
from elmo_framework.errors import DataError, allowed
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.reader import PropositionReader

_HEADER = "# global.columns ="
_NUMBER, _FORM, _PREDICATE = "ID", "FORM", "UP:PRED"
_REQUIRED = (_FORM, _PREDICATE, "UP:ARGSPANS")
_NONE, _CONTINUATION = "_", "C-"
_ARGUMENT = re.compile(r"(.+):(\d+)-(\d+)")


@final
@DatasetReader.register("conllu_plus_srl")
class ConlluPlusSrlReader(PropositionReader):
    """Reads CoNLL-U Plus with the columns of PropBank; each predicate is an example.

    The first line names the columns: `# global.columns = ID FORM ... UP:PRED UP:ARGHEADS
    UP:ARGSPANS`; `UP:ARGSPANS` has the arguments of the predicate on its line, as
    `A0:1-2|A1:4-7`. If they overlap, a word belongs to the predicate (its `V`, if that has more
    words), or else to the shortest of them; the rest of a divided argument becomes `C-A1`.
    """

    formats = (FileFormat.CONLLU,)

    def sentences(self, file: Path) -> Iterator[SrlExample]:
        names = _columns(file, _REQUIRED)
        for block in _blocks(file, names):
            columns = columns_of(block.rows, names)
            words, senses, arguments = (tuple(columns[name]) for name in _REQUIRED)
            propositions = []
            for place, (row, sense) in enumerate(zip(block.rows, senses, strict=True)):
                with error_context(file, row.line):
                    if sense != _NONE:
                        tags = tuple(_tags(place, arguments[place], len(words)))
                        propositions.append(Proposition(place, tags))
                    elif arguments[place] != _NONE:
                        problem = f"found the arguments {arguments[place]!r} without a predicate"
                        raise DataError(f"{problem}; expected '_', or a predicate")
            yield SrlExample(words, tuple(propositions), targets=senses)

    def inputs(self, file: Path) -> Iterator[PredictionInput[SrlExample]]:
        """Yield the sentences of a file, with their comments and their other columns."""
        names = _columns(file, (_FORM,))
        for block in _blocks(file, names):
            cells = columns_of(block.rows, names)
            predicates, senses = None, None
            if _PREDICATE in cells:
                senses = tuple(cells[_PREDICATE])
                predicates = tuple(place for place, sense in enumerate(senses) if sense != _NONE)
            fields = {**conllu_metadata(block), **other_fields(cells, (_NUMBER, _FORM))}
            example = SrlExample(tuple(cells[_FORM]), None, predicates, senses)
            yield PredictionInput(example, fields)


def _blocks(file: Path, names: Sequence[str]) -> Iterator[ColumnBlock]:
    return read_conllu(file, width=len(names), number_column=names.index(_NUMBER))


def _columns(file: Path, needed: Sequence[str]) -> list[str]:
    line = next((line for _, line in read_lines(file)), "")
    if not line.startswith(_HEADER):
        raise DataError(f"expected '{_HEADER} ...', found {line!r}", path=file, line=1)
    names = [name.replace("UP:PREDS", "UP:PRED") for name in line.removeprefix(_HEADER).split()]
    for name in (_NUMBER, *needed):
        if name not in names:
            raise DataError(f"unknown column {name!r}; {allowed(name, names)}", path=file, line=1)
    return names


def _tags(predicate: int, arguments: str, num_words: int) -> Iterator[str]:
    spans = _in_layers(_spans(arguments, num_words), predicate)
    owners: list[int | None] = [None] * num_words
    for number, span in enumerate(spans):
        owners[span.start : span.end] = [number] * (span.end - span.start)
    return _written(owners, [span.label for span in spans])


def _spans(arguments: str, num_words: int) -> list[LabeledSpan]:
    spans: list[LabeledSpan] = []
    for argument in [] if arguments == _NONE else arguments.split("|"):
        match = _ARGUMENT.fullmatch(argument)
        if match is None or not 1 <= int(match[2]) <= int(match[3]) <= num_words:
            expected = f"expected LABEL:FIRST-LAST with ids from 1 to {num_words}"
            raise DataError(f"found {argument!r}, {expected}")
        spans.append(LabeledSpan(int(match[2]) - 1, int(match[3]), match[1]))
    for one, other in combinations(spans, 2):
        # The rest of the longer one would be indistinguishable from a piece of the shorter.
        if _begun(one.label) == _begun(other.label) and _overlap(one, other):
            raise DataError(f"two arguments {one.label!r} overlap in {arguments!r}")
    return spans


def _in_layers(spans: Sequence[LabeledSpan], predicate: int) -> list[LabeledSpan]:
    """Return the spans, each before those that take words from it; the predicate is the last."""
    word = LabeledSpan(predicate, predicate + 1, "V")
    verbs = [span for span in spans if _begun(span.label) == "V" and _overlap(span, word)]
    arguments = [span for span in spans if span not in verbs]
    return [*sorted(arguments, key=lambda span: span.start - span.end), *(verbs or [word])]


def _overlap(one: LabeledSpan, other: LabeledSpan) -> bool:
    return one.start < other.end and other.start < one.end


def _begun(label: str) -> str:
    """Return the label of the argument that a label begins or continues."""
    return label.removeprefix(_CONTINUATION)


def _written(owners: Sequence[int | None], labels: Sequence[str]) -> Iterator[str]:
    """Yield the tag of each word from the span that it belongs to."""
    names: dict[int, str] = {}
    previous: int | None = None
    for owner in owners:
        if owner is None:
            yield "O"
        elif owner == previous:
            yield f"I-{names[owner]}"
        else:
            label = labels[owner]
            names[owner] = f"{_CONTINUATION}{_begun(label)}" if owner in names else label
            yield f"B-{names[owner]}"
        previous = owner
