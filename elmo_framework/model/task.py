"""What a model solves: examples in, predictions out, scores."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from rich.text import Text

from elmo_framework.data.text import Indexer
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Counts, Vocabularies
from elmo_framework.metrics.metric import Metric

ExampleT = TypeVar("ExampleT")
BatchT = TypeVar("BatchT")

Collator: TypeAlias = Callable[[Sequence[Any]], Any]
"""Makes a batch of examples; small and picklable."""

PredictionFormat: TypeAlias = Callable[[Iterable[tuple[Any, Any]]], Iterator[str]]
"""Writes predictions with their examples: pieces of text that follow each other in a file."""


class Task(ABC, Generic[ExampleT, BatchT]):
    """One task: plain Python, one object a task folder, never named in a config.

    Attributes:
        example_type: the dataclass that its readers yield.
    """

    example_type: ClassVar[type]

    @abstractmethod
    def count(self, examples: Iterable[ExampleT]) -> Counts:
        """Count the words and labels of the training data, for the vocabularies.

        No examples give the same names: those that a config may limit.
        """

    @abstractmethod
    def collator(self, vocabularies: Vocabularies, indexers: Sequence[Indexer]) -> Collator:
        """Return what makes batches; `indexers` are what the model's embedders asked for."""

    @abstractmethod
    def num_tokens(self, example: ExampleT) -> int:
        """Return the length of an example in words, for batches of similar length."""

    def group(self, example: ExampleT) -> object:
        """Return the object that an example shares with those beside it that are drawn with it.

        A share of the training data holds all of a group or nothing. Unless told, an example is a
        group of its own.
        """
        return example

    def sentences(self, example: ExampleT) -> Iterable[Sequence[str]]:
        """Return the sentences of an example whose vectors are worth keeping; none unless told."""
        return ()


class HeadTask(Task[ExampleT, BatchT]):
    """A task whose model predicts something for each example.

    Attributes:
        metrics: by name; the sums of a metric are kept under that name.
        default_tokenizer: what splits the raw text given to `elmo predict`, unless the reader
            has a tokenizer of its own, or the run or its biLM was made with another.
        formats: the file formats of the official scorers that predictions can be written in, by
            name. Every task has `jsonl` besides: what `to_json` returns, an object a line.
        input_keys: the keys of a JSON object that `example` reads. All others of an input are
            copied to its output.
    """

    metrics: ClassVar[Mapping[str, Metric]]
    default_tokenizer: ClassVar[str] = "spacy"
    formats: ClassVar[Mapping[str, PredictionFormat]] = {}
    input_keys: ClassVar[Sequence[str]] = ("sentence",)

    def count(self, examples: Iterable[ExampleT]) -> Counts:
        """Count `words`, those of `sentences`, and `labels`, of the examples that have one."""
        words: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        for example in examples:
            for sentence in self.sentences(example):
                words.update(sentence)
            label = self.label(example)
            labels.update(() if label is None else (label,))
        return {"words": words, "labels": labels}

    @abstractmethod
    def sentences(self, example: ExampleT) -> Iterable[Sequence[str]]:
        """Return the sentences of an example: their ELMo layers are kept, their words counted."""

    def label(self, example: ExampleT) -> str | None:
        """Return the one label of an example for `count`; None where it has none, or many."""
        return None

    @abstractmethod
    def gold(self, example: ExampleT) -> Any:
        """Return what a metric compares a prediction with."""

    @abstractmethod
    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> ExampleT:
        """Make an example without labels from a JSON object.

        A plain sentence comes as an object with the one key `sentence`. The object may hold keys
        besides `input_keys`, which mean nothing here.

        Raises:
            DataError: a key is missing or holds something else.
        """

    @abstractmethod
    def to_json(self, prediction: Any, example: ExampleT) -> dict[str, Any]:
        """Return a prediction as JSON types, with what is needed to read it.

        The annotation of `prediction` in a task is the type of its predictions, as pydantic
        restores it from JSON: `elmo predict` keeps predictions so until all are there.
        """

    def pretty(self, prediction: Any, example: ExampleT) -> Text:
        """Return a prediction for a reader at a terminal; as indented JSON unless told."""
        return Text(json.dumps(self.to_json(prediction, example), indent=2, ensure_ascii=False))
