"""Tagged sentences as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, final

from annotated_types import Gt

from elmo_framework.data.paths import parsed_lines
from elmo_framework.data.reader import DatasetReader, FileReader
from elmo_framework.data.records import json_object, words_of
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import tags_in_scheme


@final
@DatasetReader.register("tagging_json")
class JsonTaggingReader(FileReader[TaggedSentence]):
    """Reads an object a line, such as `{"tokens": ["Rain", "fell"], "tags": ["NN", "VBD"]}`.

    Other keys are not looked at; blank lines are skipped.

    Args:
        tokens_key: the key that holds the words.
        tags_key: the key that holds their tags.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`,
            `BIOUL` or `BIOES`); null for tags as they are.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        tokens_key: str = "tokens",
        tags_key: str = "tags",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        super().__init__(max_instances)
        self._tokens_key, self._tags_key = tokens_key, tags_key
        self._coding_scheme = coding_scheme

    def examples(self, file: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file."""
        return parsed_lines(file, self._sentence)

    def _sentence(self, line: str) -> TaggedSentence:
        held = json_object(line)
        words, tags = words_of(held, self._tokens_key), words_of(held, self._tags_key)
        return TaggedSentence(words, tags_in_scheme(tags, self._coding_scheme))
