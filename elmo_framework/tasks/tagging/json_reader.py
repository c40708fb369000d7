"""Tagged sentences as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Gt

from elmo_framework.common.errors import DataError, allowed, shown
from elmo_framework.data.paths import data_files, read_lines
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import Scheme
from elmo_framework.tasks.tagging.example import TaggedSentence
from elmo_framework.tasks.tagging.span_tags import span_tags


@final
@DatasetReader.register("tagging_json")
class JsonTaggingReader(DatasetReader[TaggedSentence]):
    """Reads an object a line, such as `{"tokens": ["Rain", "fell"], "tags": ["NN", "VBD"]}`.

    Other keys are not looked at; blank lines are skipped.

    Args:
        tokens_key: the key that holds the words.
        tags_key: the key that holds their tags.
        coding_scheme: what spans are written in, whichever scheme the file has (`IOB1`, `BIO`
            or `BIOUL`); null for tags as they are.
        max_instances: how many sentences are read; null for all.
    """

    example_type = TaggedSentence

    def __init__(
        self,
        tokens_key: str = "tokens",
        tags_key: str = "tags",
        coding_scheme: Scheme | None = None,
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self._tokens_key, self._tags_key = tokens_key, tags_key
        self._coding_scheme, self._max_instances = coding_scheme, max_instances

    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a file, or of the files of a folder or a pattern."""
        sentences = (
            self._sentence(line, file, number)
            for file in data_files(path)
            for number, line in read_lines(file)
            if line.strip()
        )
        return islice(sentences, self._max_instances)

    def _sentence(self, line: str, file: Path, number: int) -> TaggedSentence:
        try:
            held = _object(line)
            words, tags = _strings(held, self._tokens_key), _strings(held, self._tags_key)
            sentence = TaggedSentence(words, tags)
        except ValueError as error:
            raise DataError(str(error), path=file, line=number) from error
        if self._coding_scheme is None:
            return sentence
        lines = [number] * len(tags)
        return TaggedSentence(
            words, span_tags(tags, scheme=self._coding_scheme, path=file, lines=lines)
        )


def _object(line: str) -> dict[str, Any]:
    try:
        held = json.loads(line)
    except ValueError as error:
        raise ValueError(f"no JSON object: {error}") from error
    if not isinstance(held, dict):
        raise ValueError(f"expected a JSON object, found {shown(held)}")
    return held


def _strings(held: dict[str, Any], key: str) -> tuple[str, ...]:
    if key not in held:
        raise ValueError(f"there is no key {key!r}; {allowed(key, held)}")
    value = held[key]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{key!r} is {shown(value)}; expected a list of strings")
    return tuple(value)
