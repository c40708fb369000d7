"""Read pairs of sentences: SNLI, MultiNLI, SICK and similar data sets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, final

from elmo_framework.config.types import Count, Default
from elmo_framework.console import plural
from elmo_framework.data.formats.file_format import FileFormat
from elmo_framework.data.formats.records import Record
from elmo_framework.data.reader import DatasetReader, RecordReader
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.tasks.entailment.task import PairT, PairWithValue, SentencePair

_log = logging.getLogger(__name__)

_NO_LABEL = ("-", "-1")
"""Labels of pairs without agreement of annotators, in SNLI's files and those of Hugging Face."""


class PairReader(RecordReader[PairT]):
    """Reads one pair of sentences per line, from JSON objects or a table with a header.

    A `.csv` file has commas (or semicolons) and quotation marks, a `.tsv` or `.txt` file has tabs;
    the first line names the columns. All other files have one JSON object per line.

    Args:
        tokenizer: tokenizer of the sentences.
        premise_key: the key or column of the first sentence.
        hypothesis_key: the key or column of the second, which may follow from the first.
        target_key: the key or column of what is to be predicted.
        skip_incomplete: skip records with an empty sentence or target, rather than refuse the file;
            the log reports how many.
        only: read only the pairs with these values of these keys or columns.
    """

    formats = (FileFormat.TABLE, FileFormat.JSON_LINES)
    all_left_out = "no pair has the values of `only`, or all are skipped as incomplete"

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        sentence_keys: tuple[str, str],
        target_key: str,
        only: Mapping[str, str],
        skip_incomplete: bool,
        max_instances: int | None,
    ) -> None:
        super().__init__(max_instances)
        self.tokenizer: Tokenizer = tokenizer
        self.input_keys = sentence_keys
        self._target_key, self._only = target_key, only
        self._required_keys = (*sentence_keys, target_key) if skip_incomplete else ()

    def unlabeled(self, record: Record) -> PairT:
        return self._pair(record, None)

    def _pair(self, record: Record, target: Any) -> PairT:
        premise, hypothesis = (record.words(key, self.tokenizer) for key in self.input_keys)
        pair: PairT = self.example_type(premise, hypothesis, target)
        return pair

    def _records(self, file: Path) -> Iterator[Record]:
        return self.filled_records(file, self._required_keys, self._only)


@final
@DatasetReader.register("snli")
class SnliReader(PairReader[SentencePair]):
    """Reads one labeled pair of sentences per line, from JSON objects or a table with a header.

    Pairs with the label `-` or `-1`, on which the annotators did not agree, are skipped; the log
    reports how many.

    The keys are SNLI's and MultiNLI's. SICK is read with `sentence_A`, `sentence_B`,
    `entailment_label`, and `only: {"SemEval_set": "TRAIN"}`.

    Args:
        label_key: the key or column of the label.
        skip_incomplete: skip records with an empty sentence or label, rather than refuse the file;
            the log reports how many.
    """

    example_type = SentencePair
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
        super().__init__(
            tokenizer,
            sentence_keys=(premise_key, hypothesis_key),
            target_key=label_key,
            only=only,
            skip_incomplete=skip_incomplete,
            max_instances=max_instances,
        )

    def examples(self, file: Path) -> Iterator[SentencePair]:
        num_skipped = 0
        for record in self._records(file):
            label = record.label(self._target_key)
            if label in _NO_LABEL:
                num_skipped += 1
                continue
            yield self._pair(record, label)
        if num_skipped:
            _log.info(
                "%s: skipped %s with the label '-' or '-1'", file, plural(num_skipped, "pair")
            )


@final
@DatasetReader.register("pair_regression_json")
class PairRegressionReader(PairReader[PairWithValue]):
    """Reads one pair of sentences and a number per line, from JSON objects or a table.

    SICK is read with `sentence_A`, `sentence_B`, `relatedness_score`, and
    `only: {"SemEval_set": "TRAIN"}`.

    Args:
        value_key: the key or column of the number.
    """

    example_type = PairWithValue

    def __init__(
        self,
        tokenizer: Annotated[Tokenizer, Default("spacy")],
        only: Annotated[dict[str, str], Default({})],
        premise_key: str = "sentence1",
        hypothesis_key: str = "sentence2",
        value_key: str = "value",
        skip_incomplete: bool = False,
        max_instances: Count | None = None,
    ) -> None:
        super().__init__(
            tokenizer,
            sentence_keys=(premise_key, hypothesis_key),
            target_key=value_key,
            only=only,
            skip_incomplete=skip_incomplete,
            max_instances=max_instances,
        )

    def examples(self, file: Path) -> Iterator[PairWithValue]:
        for record in self._records(file):
            yield self._pair(record, record.number(self._target_key))
