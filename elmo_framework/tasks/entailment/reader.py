"""Read pairs of sentences: SNLI, MultiNLI, SICK and similar data sets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, final

from elmo_framework.config.types import Count, Default
from elmo_framework.console import plural
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader, RecordReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.tasks.entailment.task import SentencePair

_log = logging.getLogger(__name__)

_NO_LABEL = ("-", "-1")
"""Labels of pairs without agreement of annotators, in SNLI's files and those of Hugging Face."""


@final
@DatasetReader.register("snli")
class SnliReader(RecordReader[SentencePair]):
    """Reads one labeled pair of sentences per line, from JSON objects or a table with a header.

    A `.csv` file has commas (or semicolons) and quotation marks, a `.tsv` or `.txt` file has tabs;
    the first line names the columns. All other files have one JSON object per line. Pairs with the
    label `-` or `-1`, on which the annotators did not agree, are skipped; the log reports how many.

    The keys are SNLI's and MultiNLI's. SICK is read with `sentence_A`, `sentence_B`,
    `entailment_label`, and `only: {"SemEval_set": "TRAIN"}`.

    Args:
        tokenizer: tokenizer of the sentences.
        premise_key: the key or column of the first sentence.
        hypothesis_key: the key or column of the second, which may follow from the first.
        label_key: the key or column of the label.
        skip_incomplete: skip records with an empty sentence or label, rather than refuse the file;
            the log reports how many.
        only: read only the pairs with these values of these keys or columns.
    """

    example_type = SentencePair
    formats = (FileFormat.TABLE, FileFormat.JSON_LINES)
    all_left_out = "no pair has both a label (not '-' or '-1') and the values of `only`"

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        only: Annotated[dict[str, str], Default({})],
        premise_key: str = "sentence1",
        hypothesis_key: str = "sentence2",
        label_key: str = "gold_label",
        skip_incomplete: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.input_keys = premise_key, hypothesis_key
        self._label_key, self._only = label_key, only
        self._required_keys = (*self.input_keys, label_key) if skip_incomplete else ()

    def unlabeled(self, record: Record) -> SentencePair:
        premise, hypothesis = (record.words(key, self.tokenizer) for key in self.input_keys)
        return SentencePair(premise, hypothesis, None)

    def examples(self, file: Path) -> Iterator[SentencePair]:
        num_skipped = 0
        for record in self.filled_records(file, self._required_keys):
            if any(str(record.value(name)) != value for name, value in self._only.items()):
                continue
            label = record.label(self._label_key)
            if label in _NO_LABEL:
                num_skipped += 1
                continue
            yield replace(self.unlabeled(record), label=label)
        if num_skipped:
            _log.info(
                "%s: skipped %s with the label '-' or '-1'", file, plural(num_skipped, "pair")
            )
