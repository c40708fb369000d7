"""Read one tagged sentence per line: JSON objects, or words joined to their tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, final

from annotated_types import MinLen

from elmo_framework.config.types import Count
from elmo_framework.data.formats.columns import split_cells
from elmo_framework.data.formats.file_format import FileFormat, FileSample
from elmo_framework.data.formats.records import Record, words_of
from elmo_framework.data.formats.text_files import parsed_lines
from elmo_framework.data.inputs import PredictionInput
from elmo_framework.data.reader import DatasetReader, FileReader, RecordReader
from elmo_framework.data.tagging import Scheme, tags_in_scheme
from elmo_framework.errors import DataError
from elmo_framework.tasks.tagging.task import TaggedSentence


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
    formats = (FileFormat.JSON_LINES,)
    input_type = list

    def __init__(
        self,
        tokens_key: str = "tokens",
        tags_key: str = "tags",
        coding_scheme: Scheme | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.input_keys = (tokens_key,)
        self._tokens_key, self._tags_key = tokens_key, tags_key
        self._coding_scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        return map(self._sentence, self.records(file))

    def unlabeled(self, record: Record) -> TaggedSentence:
        with record.located():
            return TaggedSentence(words_of(record.values, self._tokens_key), None)

    def _sentence(self, record: Record) -> TaggedSentence:
        with record.located():
            words = words_of(record.values, self._tokens_key)
            tags = words_of(record.values, self._tags_key)
            return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))


@final
@DatasetReader.register("sequence_tagging")
class SequenceTaggingReader(FileReader[TaggedSentence]):
    """Reads one sentence per line, such as `The###DT rain###NN`; blank lines are skipped.

    Args:
        word_tag_delimiter: the separator of a word and its tag; the last one in a pair counts.
        token_delimiter: the separator of pairs; null for spaces and tabs.
        coding_scheme: convert the tags from the scheme of the file to this one (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null to keep them.
    """

    example_type = TaggedSentence
    formats = (FileFormat.TAGGED_WORDS,)

    def __init__(
        self,
        word_tag_delimiter: Annotated[str, MinLen(1)] = "###",
        token_delimiter: Annotated[str, MinLen(1)] | None = None,
        coding_scheme: Scheme | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._word_tag_delimiter, self._token_delimiter = word_tag_delimiter, token_delimiter
        self._coding_scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        return parsed_lines(file, self._sentence)

    def inputs(self, file: Path) -> Iterator[PredictionInput[TaggedSentence]]:
        """Yield the sentences of a file; tags are optional."""
        return parsed_lines(file, self._input)

    def recognizes(self, sample: FileSample) -> bool:
        lines = sample.filled_lines
        return bool(lines) and all(
            self._word_tag_delimiter in pair for line in lines for pair in self._pairs(line)
        )

    def _input(self, line: str) -> PredictionInput[TaggedSentence]:
        parts = [pair.rpartition(self._word_tag_delimiter) for pair in self._pairs(line)]
        words = tuple(
            word if word and tag else f"{word}{delimiter}{tag}" for word, delimiter, tag in parts
        )
        tags = [tag if word and tag else None for word, _, tag in parts]
        return PredictionInput(TaggedSentence(words, None), {"tags": tags} if any(tags) else {})

    def _sentence(self, line: str) -> TaggedSentence:
        words, tags = zip(*map(self._parts, self._pairs(line)), strict=True)
        return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))

    def _pairs(self, line: str) -> Sequence[str]:
        delimiter = self._token_delimiter
        return split_cells(line) if delimiter is None else line.split(delimiter)

    def _parts(self, pair: str) -> tuple[str, str]:
        word, delimiter, tag = pair.rpartition(self._word_tag_delimiter)
        if not (word and delimiter and tag):
            expected = f"expected a word, {self._word_tag_delimiter!r} and a tag"
            raise DataError(f"found {pair!r}, {expected}")
        return word, tag
