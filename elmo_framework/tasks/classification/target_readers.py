"""Read texts with several labels, or with a number to predict."""

from __future__ import annotations

from typing import Annotated, final

from annotated_types import MinLen

from elmo_framework.config.types import Count, Default
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.tasks.classification.reader import TextReader
from elmo_framework.tasks.classification.task import MultiLabelText, TextWithValue


@final
@DatasetReader.register("multi_label_json")
class MultiLabelReader(TextReader[MultiLabelText]):
    """Reads one text and its labels per line, from JSON objects or a table with a header.

    A text may have no label: an empty cell, or an empty list.

    Args:
        labels_key: the key or column of the labels: a list, or a string of them.
        separator: between the labels of a string, as in the cell of a table.
        skip_incomplete: skip records without text or labels, rather than refuse an empty text, and
            learn that a text has no label; the log reports how many.
    """

    example_type = MultiLabelText

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        only: Annotated[dict[str, str], Default({})],
        text_key: str = "text",
        labels_key: str = "labels",
        separator: Annotated[str, MinLen(1)] = ",",
        skip_incomplete: bool = False,
        max_sequence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(
            tokenizer,
            text_key=text_key,
            target_key=labels_key,
            only=only,
            skip_incomplete=skip_incomplete,
            max_sequence_length=max_sequence_length,
            max_instances=max_instances,
        )
        self._separator = separator

    def target(self, record: Record) -> tuple[str, ...]:
        return record.labels(self._target_key, self._separator)


@final
@DatasetReader.register("text_regression_json")
class TextRegressionReader(TextReader[TextWithValue]):
    """Reads one text and a number per line, from JSON objects or a table with a header.

    Args:
        value_key: the key or column of the number.
    """

    example_type = TextWithValue

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        only: Annotated[dict[str, str], Default({})],
        text_key: str = "text",
        value_key: str = "value",
        skip_incomplete: bool = False,
        max_sequence_length: Count | None = None,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(
            tokenizer,
            text_key=text_key,
            target_key=value_key,
            only=only,
            skip_incomplete=skip_incomplete,
            max_sequence_length=max_sequence_length,
            max_instances=max_instances,
        )

    def target(self, record: Record) -> float:
        return record.number(self._target_key)
