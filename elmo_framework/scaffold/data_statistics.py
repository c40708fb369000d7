"""Statistics of the examples of a data file, from which the sizes of a config follow."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elmo_framework.config.parse import parse
from elmo_framework.console import ProgressBar
from elmo_framework.data.reader import DatasetReader
from elmo_framework.data.tagging import spans
from elmo_framework.errors import RunError
from elmo_framework.model.multi_label import MultiLabelTask
from elmo_framework.model.task import HeadTask
from elmo_framework.scaffold.language import guess_language
from elmo_framework.tasks.question_answering.example import PassageQuestion
from elmo_framework.tasks.tagging.task import TaggedSentence

_SECONDS_WITHOUT_PROGRESS = 2.0
_NUM_SENTENCES = 2_000
_MIN_EXAMPLES = 20


@dataclass(frozen=True)
class DataStatistics:
    """Statistics of the examples of a data file.

    Attributes:
        lengths: the number of words of each example, separated by spaces.
        labels: how many examples have each label; of tags, how many sentences have each type.
        has_spans: whether the labels are tags that mark spans.
        num_without_answer: the number of questions without an answer.
        language: as of `guess_language`.
    """

    lengths: array[int]
    labels: Mapping[str, int]
    has_spans: bool
    num_without_answer: int
    language: str

    @property
    def num_examples(self) -> int:
        return len(self.lengths)

    @cached_property
    def longest(self) -> int:
        """The number of words of the longest example."""
        return max(self.lengths)

    @property
    def rarest(self) -> int | None:
        """The number of examples of the rarest label; None without labels."""
        return min(self.labels.values(), default=None)

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent label, and the ratio of the examples that have it."""
        label = max(self.labels, key=lambda label: self.labels[label])
        return label, self.labels[label] / self.num_examples


def fast_reader(reader: Mapping[str, Any]) -> DatasetReader[Any]:
    """Build a dataset reader from its config; it splits texts at spaces, which is fast."""
    built: DatasetReader[Any] = parse(DatasetReader, dict(reader), source="reader").build()
    if built.tokenizer is None:
        return built
    return parse(DatasetReader, {**reader, "tokenizer": "whitespace"}, source="reader").build()


def data_statistics(
    path: Path, reader: Mapping[str, Any], task: HeadTask[Any, Any]
) -> DataStatistics:
    """Read all examples of a file or a folder.

    Args:
        path: of the data.
        reader: the config of the dataset reader, see `fast_reader`.
        task: of the examples.

    Raises:
        DataError: the data cannot be read.
        RunError: there are fewer than 20 examples, or only one label.
    """
    built = fast_reader(reader)
    lengths, labels = array("q"), Counter[str]()
    has_spans, num_without_answer = False, 0
    sentences: list[tuple[str, ...]] = []
    with ProgressBar("reading", unit="example", delay=_SECONDS_WITHOUT_PROGRESS) as progress:
        for example in built.read(path):
            progress.advance()
            words = [tuple(sentence) for sentence in task.sentences(example)]
            lengths.append(sum(map(len, words)))
            if len(sentences) < _NUM_SENTENCES:
                sentences += words
            num_without_answer += isinstance(example, PassageQuestion) and not example.answers
            own_labels = list(_labels(example, task))
            has_spans |= any(span for _, span in own_labels)
            labels.update({label for label, _ in own_labels})
    if len(lengths) < _MIN_EXAMPLES:
        raise RunError(
            f"{path}: found {len(lengths)} examples; a part of them is held out, so at least "
            f"{_MIN_EXAMPLES} are needed"
        )
    if len(labels) == 1 and not has_spans:
        raise RunError(f"{path}: all examples have the label {next(iter(labels))!r}")
    return DataStatistics(lengths, labels, has_spans, num_without_answer, guess_language(sentences))


def _labels(example: Any, task: HeadTask[Any, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the labels of an example, and whether each is the type of a span."""
    label = task.label(example)
    if label is not None:
        yield label, False
    if isinstance(task, MultiLabelTask):
        yield from ((each, False) for each in task.gold(example))
    if isinstance(example, TaggedSentence):
        tagged_spans = spans(example.tags or ())
        yield from ((span.label, True) for span in tagged_spans)
        yield from ((tag, False) for tag in example.tags or () if tag != "O" and not tagged_spans)
