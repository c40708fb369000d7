"""Read documents with coreference: the columns of CoNLL-2012, and JSON lines."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, final

from elmo_framework.config.types import Count
from elmo_framework.console import plural
from elmo_framework.data.formats.columns import placed_cells
from elmo_framework.data.formats.conll2012 import Conll2012Sentence, read_conll2012, unescaped
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record, is_words, string_of, value_of
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader, RecordReader
from elmo_framework.errors import DataError, shown
from elmo_framework.tasks.coreference.columns import decode
from elmo_framework.tasks.coreference.example import Cluster, Document, Mention, clusters_of

ONTONOTES = "^(bc|bn|mz|nw|pt|tc|wb)/"
"""The folders of OntoNotes: broadcast conversation and news, magazines, newswire, pivot texts,
telephone, web."""


class CoreferenceReader(FileReader[Document]):
    """Reads documents, each one example, and optionally truncates and filters them.

    Args:
        max_sentences: maximum number of sentences of a document; null for all. Mentions in the
            others are removed.
        remove_singletons: whether to remove clusters of one mention.
        genre_pattern: a regular expression whose one group is the genre in the name of a
            document; by default that of OntoNotes, null for no genres.
    """

    example_type = Document

    def __init__(
        self,
        max_sentences: Count | None = None,
        remove_singletons: bool = False,
        genre_pattern: str | None = ONTONOTES,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        if genre_pattern is not None:
            _check_genre_pattern(genre_pattern)
        self._genre_pattern = genre_pattern
        self.max_sentences, self.remove_singletons = max_sentences, remove_singletons

    def examples(self, file: Path) -> Iterator[Document]:
        for whole in self.documents(file):
            yield whole.cut(self.max_sentences, remove_singletons=self.remove_singletons)

    @abstractmethod
    def documents(self, file: Path) -> Iterator[Document]:
        """Yield the unfiltered documents of a file."""

    def genre(self, key: str) -> str | None:
        """Return the genre in the name of a document; None if there is none."""
        match = None if self._genre_pattern is None else re.search(self._genre_pattern, key)
        return None if match is None else match[1]


def _check_genre_pattern(pattern: str) -> None:
    try:
        num_groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"genre_pattern is {pattern!r}: {error}") from error
    if num_groups != 1:
        raise ValueError(
            f"genre_pattern is {pattern!r} with {plural(num_groups, 'group')}; "
            "use one group in parentheses for the genre"
        )


@final
@DatasetReader.register("coref")
class ConllCoreferenceReader(CoreferenceReader):
    """Reads the columns of the CoNLL-2012 shared task; each part of a document is an example."""

    formats = (FileFormat.CONLL2012,)

    def documents(self, file: Path) -> Iterator[Document]:
        for sentences in _by_document(file):
            yield replace(self._unlabeled(sentences), clusters=_clusters(sentences, file))

    def inputs(self, file: Path) -> Iterator[PredictionInput[Document]]:
        """Yield the documents of a file; their last column is ignored."""
        for sentences in _by_document(file):
            document = self._unlabeled(sentences)
            fields = {"doc_key": document.key, "part": document.part}
            yield PredictionInput(document, fields)

    def _unlabeled(self, sentences: Sequence[Conll2012Sentence]) -> Document:
        return Document(
            sentences=tuple(unescaped(sentence.words) for sentence in sentences),
            clusters=None,
            key=sentences[0].document_id,
            part=sentences[0].part,
            speakers=tuple(sentence.speakers for sentence in sentences),
            genre=self.genre(sentences[0].document_id),
        )


def _by_document(file: Path) -> Iterator[list[Conll2012Sentence]]:
    for _, sentences in groupby(read_conll2012(file), lambda sentence: sentence.document):
        yield list(sentences)


def _clusters(sentences: Sequence[Conll2012Sentence], file: Path) -> tuple[Cluster, ...]:
    entities: defaultdict[str, list[Mention]] = defaultdict(list)
    num_words = 0
    for sentence in sentences:
        first = sentence.first_line
        with placed_cells(file, range(first, first + len(sentence.words))):
            mentions = decode(sentence.coreference)
        for entity, start, end in mentions:
            entities[entity].append(Mention(num_words + start, num_words + end))
        num_words += len(sentence.words)
    return clusters_of(entities.values())


@final
@DatasetReader.register("coref_jsonlines")
class JsonCoreferenceReader(RecordReader[Document], CoreferenceReader):
    """Reads one JSON object per line: `sentences`, `clusters`, and optionally the other keys.

    `doc_key` is the name of the document, or with `key_has_part` that and the number of its part,
    as e2e-coref names those of CoNLL-2012: `nw/lamp_01_0`. `speakers` are as many as the words;
    `clusters` are lists of [first word, last word], counted through the sentences from 0. `genre`
    has precedence over the genre in the name of the document.

    Args:
        key_has_part: whether the last `_` of `doc_key` is followed by the number of a part, so that
            predictions in columns name the document and its part like the gold columns.
    """

    formats = (FileFormat.JSON_LINES,)
    input_keys, input_type = ("sentences",), list
    other_keys = ("speakers", "genre")  # without `doc_key`, which is in the output too

    def __init__(
        self,
        max_sentences: Count | None = None,
        remove_singletons: bool = False,
        genre_pattern: str | None = ONTONOTES,
        key_has_part: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_sentences, remove_singletons, genre_pattern, max_instances)
        self._key_has_part = key_has_part

    def documents(self, file: Path) -> Iterator[Document]:
        return map(self._document, self.records(file))

    def unlabeled(self, record: Record) -> Document:
        with record.located():
            return self._unlabeled(record.values)

    def _document(self, record: Record) -> Document:
        with record.located():
            document = self._unlabeled(record.values)
            return replace(document, clusters=clusters(record.values, "clusters"))

    def _unlabeled(self, values: Mapping[str, Any]) -> Document:
        key, part = string_of(values, "doc_key") if "doc_key" in values else "", None
        if self._key_has_part:
            key, part = _divided(key)
        return Document(
            sentences=word_lists(values, "sentences"),
            clusters=None,
            key=key,
            part=part,
            speakers=word_lists(values, "speakers") if "speakers" in values else None,
            genre=string_of(values, "genre") if "genre" in values else self.genre(key),
        )


def _divided(key: str) -> tuple[str, str]:
    """Return the name of a document, and its part in the form of CoNLL-2012."""
    name, _, part = key.rpartition("_")
    if not part.isdecimal() or not name:
        raise DataError(f"'doc_key' is {key!r}; expected a name, '_' and the number of a part")
    return name, f"{int(part):03}"


def word_lists(fields: Mapping[str, Any], key: str) -> tuple[tuple[str, ...], ...]:
    """Return the lists of strings of a key; one empty list if there are none.

    Raises:
        DataError: the key is missing, or its value is malformed.
    """
    value = value_of(fields, key)
    if not isinstance(value, list) or not all(map(is_words, value)):
        raise DataError(f"{key!r} is {shown(value)}; expected a list of lists of strings")
    return tuple(map(tuple, value)) or ((),)


def clusters(fields: Mapping[str, Any], key: str) -> tuple[Cluster, ...]:
    """Return clusters: lists of pairs of a first and a last word.

    Raises:
        DataError: the key is missing, or its value is malformed.
    """
    value = value_of(fields, key)
    if not isinstance(value, list) or not all(map(_is_cluster, value)):
        expected = "expected a list of clusters such as [[0, 0], [4, 5]]"
        raise DataError(f"{key!r} is {shown(value)}; {expected}")
    return clusters_of([[Mention(*pair) for pair in cluster] for cluster in value])


def _is_cluster(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_pair, value))


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
