from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from elmo_framework.data.labels import LabeledBatch
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError
from elmo_framework.model.classifier import Classifier, LabelTask
from elmo_framework.model.multi_label import MultiLabelHead
from elmo_framework.model.regression import RegressionHead

COUNTS = Vocabularies({"labels": {"yes": 2, "no": 1}})
LABELS = COUNTS.labels()


@dataclass(frozen=True)
class Example:
    sentences: tuple[tuple[str, ...], ...]
    label: str | None = None


class Toy(LabelTask[Example]):
    example_type = Example
    metrics: ClassVar = {}

    def sentences(self, example: Example) -> tuple[tuple[str, ...], ...]:
        return example.sentences

    def label(self, example: Example) -> str | None:
        return example.label

    def example(self, inputs: Mapping[str, Any], tokenizer: Tokenizer) -> Example:
        raise NotImplementedError

    def to_json(self, prediction: object, example: Example) -> dict[str, Any]:
        raise NotImplementedError


COLLATE = Toy().collator(COUNTS, [])


def batch_of(*examples: Example) -> LabeledBatch:
    batch = COLLATE(examples)
    assert isinstance(batch, LabeledBatch)
    return batch


def test_sentences_are_ordered_by_position_then_example() -> None:
    batch = batch_of(Example((("a",), ("b", "c"))), Example((("d", "e"), ("f",))))

    assert batch.text.words == (("a",), ("d", "e"), ("b", "c"), ("f",))
    assert batch.num_tokens == 6


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [((("a", "b"),), "'a b' and 1 more"), ((("a",), ("b",), ("c",)), "'a / b / c' and 1 more")],
    ids=["one", "three"],
)
def test_a_title_has_the_first_example(
    sentences: tuple[tuple[str, ...], ...], expected: str
) -> None:
    assert batch_of(Example(sentences), Example(sentences)).title == expected


def test_labels_are_ids_if_every_example_has_one() -> None:
    yes, no = Example((("a",),), "yes"), Example((("b",),), "no")
    batch = batch_of(no, yes)

    assert batch.labels is not None
    assert torch.equal(batch.labels, torch.tensor([LABELS.id("no"), LABELS.id("yes")]))
    assert batch.examples == (no, yes)
    assert batch_of(yes, Example((("b",),))).labels is None


def test_an_unseen_label_names_the_last_sentence() -> None:
    with pytest.raises(DataError, match=r"'maybe'.*'of course'"):
        batch_of(Example((("a",), ("of", "course")), "maybe"))


def test_examples_with_other_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        batch_of(Example((("a",), ("b",))), Example((("a",),)))


def test_a_collator_can_be_sent_to_a_worker() -> None:
    example = Example((("a",),), "yes")
    assert pickle.loads(pickle.dumps(COLLATE))([example]).text.words == (("a",),)


@pytest.mark.parametrize("kind", [Classifier, MultiLabelHead, RegressionHead])
@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (torch.zeros(3, 2), r"a tensor of \(3, 2\)"),
        (torch.zeros(2), r"a tensor of \(2,\)"),
        (None, "None"),
    ],
)
def test_logits_of_another_shape_are_named(kind: type, returned: object, shown: str) -> None:
    class Own(kind):
        def logits(self, batch: LabeledBatch) -> object:
            return returned

    counts = Vocabularies({"labels": {"1": 2, "2": 1}})
    batch = batch_of(Example((("a",),)), Example((("b",),)))
    with pytest.raises(
        RunError, match=rf"^Own\.logits returned {shown}; expected a tensor of \(2, "
    ):
        Own(counts)(batch)
