"""The reader of semantic roles in CoNLL-U Plus, the format of the Universal Proposition Banks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, final

from elmo_framework.common.errors import DataError, allowed
from elmo_framework.data.columns import Row, read_conllu
from elmo_framework.data.paths import read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.tasks.srl.example import Proposition
from elmo_framework.tasks.srl.reader import PropositionReader

_HEADER = "# global.columns ="
_NUMBER, _HELD = "ID", ("FORM", "UP:PRED", "UP:ARGSPANS")
_NONE = "_"
_ARGUMENT = re.compile(r"(.+):(\d+)-(\d+)")


@final
@DatasetReader.register("conllu_plus_srl")
class ConlluPlusSrlReader(PropositionReader):
    """Reads CoNLL-U Plus with the columns of PropBank, an example a predicate.

    The first line names the columns: `# global.columns = ID FORM ... UP:PRED UP:ARGHEADS
    UP:ARGSPANS`; `UP:ARGSPANS` holds the arguments of the predicate on its line, as
    `A0:1-2|A1:4-7`. Where they overlap a word belongs to the predicate, or else to the shortest of
    them; what that cuts off goes on as `C-A1`.

    Args:
        skip_sentences_without_predicates: whether they have no example; else one in which every
            word is outside and none is marked.
        max_sentence_length: how many words a sentence has at most that is not left out; null for no
            such bound. For training: F1 is to be over all sentences, so state a
            `validation_dataset_reader` without it.
        max_instances: how many examples are read; null for all.
    """

    def sentences(self, file: Path) -> Iterator[tuple[tuple[str, ...], list[Proposition]]]:
        """Yield the words of each sentence of a file, and its propositions."""
        names = _columns(file)
        for rows in read_conllu(file, width=len(names), number_column=names.index(_NUMBER)):
            tokens = [_token(row, names) for row in rows]
            propositions = [
                Proposition(place, tuple(_tags(place, token, len(tokens), file)))
                for place, token in enumerate(tokens)
                if token.sense != _NONE
            ]
            yield tuple(token.form for token in tokens), propositions


class _Token(NamedTuple):
    line: int
    form: str
    sense: str
    arguments: str


def _columns(file: Path) -> list[str]:
    line = next((line for _, line in read_lines(file)), "")
    if not line.startswith(_HEADER):
        raise DataError(f"expected '{_HEADER} ...', found {line!r}", path=file, line=1)
    names = [name.replace("UP:PREDS", "UP:PRED") for name in line.removeprefix(_HEADER).split()]
    for needed in (_NUMBER, *_HELD):
        if needed not in names:
            known = allowed(needed, names)
            raise DataError(f"there is no column {needed!r}; {known}", path=file, line=1)
    return names


def _token(row: Row, names: Sequence[str]) -> _Token:
    cells = dict(zip(names, row.columns, strict=True))
    return _Token(row.line, *(cells[name] for name in _HELD))


def _tags(predicate: int, token: _Token, num_words: int, file: Path) -> Iterator[str]:
    spans = []
    for argument in [] if token.arguments == _NONE else token.arguments.split("|"):
        match = _ARGUMENT.fullmatch(argument)
        if match is None or not 1 <= int(match[2]) <= int(match[3]) <= num_words:
            expected = f"expected LABEL:FIRST-LAST with ids from 1 to {num_words}"
            raise DataError(f"found {argument!r}, {expected}", path=file, line=token.line)
        spans.append((int(match[2]) - 1, int(match[3]), match[1]))
    spans = [*sorted(spans, key=lambda span: span[0] - span[1]), (predicate, predicate + 1, "V")]
    owners: list[int | None] = [None] * num_words
    for number, (start, end, _) in enumerate(spans):
        owners[start:end] = [number] * (end - start)
    return _written(owners, [label for _, _, label in spans])


def _written(owners: Sequence[int | None], labels: Sequence[str]) -> Iterator[str]:
    """Yield the tag of each word, given the span that it belongs to."""
    names: dict[int, str] = {}
    previous: int | None = None
    for owner in owners:
        if owner is None:
            yield "O"
        elif owner == previous:
            yield f"I-{names[owner]}"
        else:
            names[owner] = f"C-{labels[owner]}" if owner in names else labels[owner]
            yield f"B-{names[owner]}"
        previous = owner
