"""Read tagged sentences from JSON lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, final

from elmo_framework.config.types import Count
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record, words_of
from elmo_framework.data.formats.text_files import error_context
from elmo_framework.data.reader import DatasetReader, RecordReader
from elmo_framework.data.tagging import Scheme, tags_in_scheme
from elmo_framework.tasks.tagging.example import TaggedSentence


@final
@DatasetReader.register("tagging_json")
class JsonTaggingReader(RecordReader[TaggedSentence]):
    """Reads one JSON object per line, such as `{"tokens": ["It", "fell"], "tags": ["PRP", "VBD"]}`.

    Other keys are ignored; blank lines are skipped.

    Args:
        tokens_key: the key of the words.
        tags_key: the key of their tags.
        coding_scheme: convert the tags from the scheme of the file to this one (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null to keep them.
    """

    example_type = TaggedSentence
    formats: ClassVar[Collection[FileFormat]] = (FileFormat.JSON_LINES,)
    input_type = list

    def __init__(
        self,
        tokens_key: str = "tokens",
        tags_key: str = "tags",
        coding_scheme: Scheme | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._tokens_key, self._tags_key = tokens_key, tags_key
        self._coding_scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        return map(self._sentence, self.records(file))

    @property
    def input_keys(self) -> Sequence[str]:
        return (self._tokens_key,)

    def unlabeled(self, record: Record) -> TaggedSentence:
        with error_context(record.path, record.line):
            return TaggedSentence(words_of(record.values, self._tokens_key), None)

    def _sentence(self, record: Record) -> TaggedSentence:
        with error_context(record.path, record.line):
            words = words_of(record.values, self._tokens_key)
            tags = words_of(record.values, self._tags_key)
            return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))
