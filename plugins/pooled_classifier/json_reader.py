"""Classified texts as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Gt

from elmo_framework.common.component import Default
from elmo_framework.common.errors import allowed
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import Tokenizer

from .example import ClassifiedText
from .lines import Fields, read_texts


@final
@DatasetReader.register("labelled_text_json")
class JsonTextReader(DatasetReader[ClassifiedText]):
    """Reads a JSON object a line, such as `{"text": "What a film!", "label": "positive"}`.

    A label is a string or a whole number; other keys are not looked at.

    Args:
        tokenizer: what splits a text into words.
        text_key: the key that holds the text.
        label_key: the key that holds the label.
        max_instances: how many texts are read; null for all.
    """

    example_type = ClassifiedText

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        text_key: str = "text",
        label_key: str = "label",
        max_instances: Annotated[int, Gt(0)] | None = None,
    ) -> None:
        self.tokenizer: Tokenizer = tokenizer
        self._text_key, self._label_key = text_key, label_key
        self._max_instances = max_instances

    def read(self, path: Path) -> Iterator[ClassifiedText]:
        """Yield the texts of a file, or of the files of a folder or a pattern."""
        return read_texts(
            path,
            parse=self._parse,
            tokenizer=self.tokenizer,
            max_instances=self._max_instances,
        )

    def _parse(self, line: str) -> Fields:
        try:
            held = json.loads(line)
        except ValueError as error:
            raise ValueError(f"no JSON object: {error}") from error
        if not isinstance(held, dict):
            raise ValueError(f"expected a JSON object, not {held!r}")
        text, label = _value(held, self._text_key), _value(held, self._label_key)
        if not isinstance(text, str):
            raise ValueError(f"{self._text_key!r} is {text!r}; expected a string")
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise ValueError(
                f"{self._label_key!r} is {label!r}; expected a string or a whole number"
            )
        return Fields(text, str(label))


def _value(held: dict[str, Any], key: str) -> Any:
    if key not in held:
        raise ValueError(f"there is no key {key!r}; {allowed(key, held)}")
    return held[key]
