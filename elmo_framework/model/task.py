"""The base classes of tasks: examples in, predictions and scores out."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from rich.text import Text

from elmo_framework.data.annotation import Annotation, PredictionRecord
from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.metrics.metric import Metric, type_of_prediction
from elmo_framework.model.mistakes import Mistake

ExampleT = TypeVar("ExampleT")
BatchT = TypeVar("BatchT")

Collator: TypeAlias = Callable[[Sequence[Any]], Any]
"""Makes a batch of examples; picklable."""

PredictionFormat: TypeAlias = Callable[[Iterable[tuple[Any, Any]]], Iterator[str]]
"""Yields the text of a file from pairs of a prediction and its example."""


RecordFormat: TypeAlias = Callable[[Iterable[PredictionRecord], Sequence[str]], Iterator[str]]
"""Yields the text of a file from predictions with their inputs, and the labels of the model."""


class Task(ABC, Generic[ExampleT, BatchT]):
    """A task: stateless, with one instance in a task folder; models name it, configs do not.

    Attributes:
        example_type: the dataclass that its readers yield.
    """

    example_type: ClassVar[type]

    @abstractmethod
    def count(self, examples: Iterable[ExampleT]) -> Counts:
        """Count the words and labels of the training data, for the vocabularies.

        The names of the vocabularies do not depend on the examples: `count([])` returns them all.
        """

    @abstractmethod
    def collator(self, vocabularies: Vocabularies, indexers: Sequence[Indexer]) -> Collator:
        """Return the collator; `indexers` are those of the model."""

    @abstractmethod
    def num_tokens(self, example: ExampleT) -> int:
        """Return the length of an example in words, for bucketing."""

    def group(self, example: ExampleT) -> object:
        """Return an object that is identical for consecutive examples of one group.

        `train_fraction` takes whole groups. By default each example is a group.
        """
        return example

    def sentences(self, example: ExampleT) -> Iterable[Sequence[str]]:
        """Return the sentences of an example to cache layers of; none by default."""
        return ()

    def document(self, example: ExampleT) -> Sequence[Sequence[str]] | None:
        """Return the sentences of the document of an example; None where it is unknown.

        Its batches then have `TextBatch.places`.
        """
        return None


class HeadTask(Task[ExampleT, BatchT]):
    """A task whose model predicts something for each example.

    Attributes:
        metrics: by name, which is the prefix of their sums.
        default_tokenizer: tokenizes the input of `elmo predict` if neither the reader nor the run
            nor its biLM has a tokenizer.
        formats: prediction formats of official scorers, by name. Every task also has `jsonl`, one
            object of `to_json` per line, and tables: `csv` and `tsv`.
        record_formats: prediction formats that also have identifiers and texts of inputs.
        input_keys: the keys that `example` reads. Other keys of an input are copied to its output.
        sentence_keys: the keys of `to_json` with the words of a sentence; a table has its text
            instead.
        agreement_scores: the scores that compare two predictions of an ensemble that votes, if its
            first run was not selected by a score; the first that the model has. Without one,
            predictions agree only if they are equal, as labels do.
    """

    metrics: ClassVar[Mapping[str, Metric]]
    default_tokenizer: ClassVar[str] = "spacy"
    formats: ClassVar[Mapping[str, PredictionFormat]] = {}
    record_formats: ClassVar[Mapping[str, RecordFormat]] = {}
    input_keys: ClassVar[Sequence[str]] = ("sentence",)
    sentence_keys: ClassVar[Sequence[str]] = ("words",)
    agreement_scores: ClassVar[Sequence[str]] = ()

    def count(self, examples: Iterable[ExampleT]) -> Counts:
        """Count the words of `sentences` as `words`, and `counted_labels` as `labels`."""
        words: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        for example in examples:
            for sentence in self.sentences(example):
                words.update(sentence)
            labels.update(self.counted_labels(example))
        return {"words": words, "labels": labels}

    @abstractmethod
    def collate(
        self, examples: Sequence[ExampleT], vocabularies: Vocabularies, indexers: Sequence[Indexer]
    ) -> BatchT:
        """Make a batch of examples.

        Args:
            examples: one or more.
            vocabularies: of the training data.
            indexers: convert words to the ids that the model reads.

        Raises:
            DataError: a label does not occur in the training data.
        """

    def collator(self, vocabularies: Vocabularies, indexers: Sequence[Indexer]) -> Collator:
        return partial(self.collate, vocabularies=vocabularies, indexers=tuple(indexers))

    def num_tokens(self, example: ExampleT) -> int:
        """Return the length of an example in words, for bucketing; by default of its sentences."""
        return sum(map(len, self.sentences(example)))

    def sampling_unit(self, example: ExampleT) -> str:
        """Return the text that makes examples depend on each other, such as their passage.

        `test_fraction` and `validation_fraction` hold out whole units, and statistics resample
        them: examples of one text are not independent. The text must not depend on options that
        training and validation readers may set differently. By default it is the first of
        `sentences`: the sentence or the premise.
        """
        return " ".join(next(iter(self.sentences(example)), ()))

    @abstractmethod
    def sentences(self, example: ExampleT) -> Iterable[Sequence[str]]:
        """Return the sentences of an example, to count their words and cache their layers."""

    def label(self, example: ExampleT) -> str | None:
        """Return the label of an example; None if it has none or several."""
        return None

    def counted_labels(self, example: ExampleT) -> Iterable[str]:
        """Return the labels of an example for `count`; by default `label`, if it has one."""
        label = self.label(example)
        return () if label is None else (label,)

    @abstractmethod
    def gold(self, example: ExampleT) -> Any:
        """Return what metrics compare the prediction with.

        Raises:
            DataError: the example has no labels.
        """

    def as_gold(self, prediction: Any) -> Any:
        """Return a prediction in the form of `gold`, to compare two predictions by a metric."""
        return prediction

    def comparable_gold(self, example: ExampleT) -> object:
        """Return `gold` in a form that shows whether two runs were scored on equal labels."""
        return self.gold(example)

    @abstractmethod
    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ExampleT:
        """Make an example without labels from a JSON object.

        A plain sentence arrives as `{"sentence": ...}`. Keys that are not in `input_keys` are
        ignored.

        Raises:
            DataError: a key is missing or its value has another type.
        """

    @abstractmethod
    def to_json(self, prediction: Any, example: ExampleT) -> dict[str, Any]:
        """Return a prediction as JSON types, with the input that a reader of it needs.

        Annotate `prediction` in a member: `elmo predict --resume` saves predictions as JSON, and
        pydantic restores that type. Metrics that a config adds must accept it.
        """

    def annotations(self, prediction: Any, example: ExampleT) -> Sequence[Annotation]:
        """Return the labeled spans of a prediction, in order; none by default.

        Tables have a row for each, and brat a line; without them, a table has one row per input.
        """
        return ()

    def annotated_objects(self, output: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the objects in the JSON of a prediction that `annotations` describe, in order.

        They get the characters and the probability of their span.
        """
        return ()

    def mistake(self, prediction: Any, example: ExampleT) -> Mistake | None:
        """Return what is wrong with a prediction; None if nothing, or if the task cannot show it.

        Raises:
            DataError: the example has no labels.
        """
        return None

    def prediction_type(self) -> Any:
        """Return the type of `prediction` in `to_json`; see `type_of_prediction`."""
        return type_of_prediction(type(self).to_json)

    def pretty(self, prediction: Any, example: ExampleT) -> Text:
        """Return a prediction for display in a terminal; by default as indented JSON."""
        return Text(json.dumps(self.to_json(prediction, example), indent=2, ensure_ascii=False))
