"""One label for each example: batches, and predictions as tensors and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import shorten
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from rich.text import Text
from torch import Tensor

from elmo_framework.data.text import TextBatch
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.errors import DataError

TargetT = TypeVar("TargetT")

_SHOWN = 100


@dataclass(frozen=True, slots=True)
class LabeledBatch:
    """Examples of one or more sentences, with one target each or one label for each word.

    All sentences are in one text, so that each encoder runs once: the first sentence of every
    example, then the second of every example, and so on, padded to the longest.

    Attributes:
        text: the sentences.
        labels: the ids of the labels, 0 at padding; 0 or 1 for each label where an example has
            several; or numbers to predict. None unless all examples have them.
        examples: the examples, in order.
    """

    text: TextBatch
    labels: Int[Tensor, "batch ..."] | Float[Tensor, "batch ..."] | None
    examples: tuple[Any, ...]

    @property
    def num_tokens(self) -> int:
        return self.text.num_words

    @property
    def title(self) -> str:
        """The sentences of the first example, separated by `/`, and the number of others."""
        first, *others = self.text.words[:: len(self.examples)]
        words = (*first, *chain.from_iterable(("/", *sentence) for sentence in others))
        return batch_title(words, len(self.examples))


@dataclass(frozen=True, slots=True)
class Classification:
    """The most probable label, and the probability of each.

    Attributes:
        label: the first of several alike.
        probabilities: of all labels.
        is_calibrated: whether the probabilities are those of a fitted temperature.
    """

    label: str
    probabilities: Mapping[str, float]
    is_calibrated: bool = False


def classifications(
    logits: Float[Tensor, "batch labels"], labels: Vocabulary, *, temperature: float | None = None
) -> list[Classification]:
    """Return the most probable label of each row of scores; the first of several alike.

    Args:
        logits: the scores.
        labels: in the order of the scores.
        temperature: divides the scores; see `Head.temperature`.
    """
    rows = (logits.float() / (temperature or 1.0)).softmax(dim=1).tolist()
    best = logits.argmax(dim=1).tolist()
    is_calibrated = temperature is not None
    return [
        Classification(
            labels.items[index], dict(zip(labels.items, row, strict=True)), is_calibrated
        )
        for index, row in zip(best, rows, strict=True)
    ]


def label_ids(
    labeled: Iterable[tuple[str | None, Sequence[str]]], labels: Vocabulary
) -> Int[Tensor, " batch"] | None:
    """Return the ids of labels; None when one of them is not known.

    Args:
        labeled: each label with the words that it belongs to, for messages.
        labels: those of the training data.

    Raises:
        DataError: a label was not seen in training.
    """
    ids: list[int] = []
    for label, words in labeled:
        if label is None:
            return None
        ids += known_ids([label], labels, words)
    return torch.tensor(ids)


def known_ids(items: Iterable[str], labels: Vocabulary, words: Sequence[str]) -> list[int]:
    """Return the ids of the labels that some words have.

    Raises:
        DataError: a label was not seen in training.
    """
    try:
        return [labels.id(label) for label in items]
    except DataError as error:
        hint = "Labels are counted before training, in the data of datasets_for_vocab_creation."
        raise DataError(f"{error} It occurs in: {excerpt(words)}. {hint}") from error


def required_target(target: TargetT | None, words: Sequence[str]) -> TargetT:
    """Return the label, the labels or the number of an example.

    Raises:
        DataError: there is none.
    """
    if target is None:
        raise DataError(f"an example without a label cannot be scored: {excerpt(words)}")
    return target


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels above the threshold, the most probable first, and the probability of each.

    Attributes:
        labels: those that are predicted.
        probabilities: of all labels.
        is_calibrated: whether the probabilities are those of a fitted temperature.
    """

    labels: tuple[str, ...]
    probabilities: Mapping[str, float]
    is_calibrated: bool = False


def label_sets(
    logits: Float[Tensor, "batch labels"],
    labels: Vocabulary,
    *,
    threshold: float,
    temperature: float | None = None,
) -> list[LabelSet]:
    """Return the labels of each row whose sigmoid is above the threshold.

    Args:
        logits: the scores.
        labels: in the order of the scores.
        threshold: of the probabilities.
        temperature: divides the scores; see `Head.temperature`.
    """
    rows = (logits.double() / (temperature or 1.0)).sigmoid().tolist()
    is_calibrated = temperature is not None
    return [
        _label_set(dict(zip(labels.items, row, strict=True)), threshold, is_calibrated)
        for row in rows
    ]


def label_lines(predictions: Iterable[tuple[Classification, Any]]) -> Iterator[str]:
    """Write labels as GLUE's server reads them: a table of numbers, from 0, and labels."""
    yield "index\tprediction\n"
    for index, (prediction, _) in enumerate(predictions):
        yield f"{index}\t{prediction.label}\n"


def label_in_color(prediction: Classification | LabelSet) -> Text:
    """Return each label with its probability; a dash without labels."""
    labels = prediction.labels if isinstance(prediction, LabelSet) else (prediction.label,)
    parts = [
        Text.assemble((label, "bold green"), (f" {prediction.probabilities[label]:.0%}", "dim"))
        for label in labels
    ]
    return Text(", ").join(parts) if parts else Text("-", "dim")


def batch_title(words: Sequence[str], num_examples: int) -> str:
    """Return the first words of the first example of a batch, and how many follow it."""
    return f"{excerpt(words)} and {num_examples - 1} more"


def excerpt(words: Sequence[str]) -> str:
    """Return the first words of a text, for messages."""
    return repr(shorten(" ".join(words), width=_SHOWN, placeholder=" ..."))


def _label_set(
    probabilities: Mapping[str, float], threshold: float, is_calibrated: bool
) -> LabelSet:
    labels = [label for label, probability in probabilities.items() if probability > threshold]
    labels.sort(key=lambda label: -probabilities[label])
    return LabelSet(tuple(labels), probabilities, is_calibrated)
