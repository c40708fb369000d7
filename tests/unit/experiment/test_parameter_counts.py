from collections import Counter

import pytest
import torch
from torch import nn

from elmo_framework import components
from elmo_framework.common.build import parse
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.experiment.parameter_counts import (
    Amount,
    PlaceholderVocabularies,
    amount_as_json,
    amount_of,
    count_parameters,
    frozen_parameters,
    show_amount,
    total_of,
)
from elmo_framework.model.model import Model

components.load()

SIZES = {"words": 10007, "labels": 211}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(50, 10007, bias=False)
        self.second = nn.Linear(50, 10007)
        self.second.weight = self.first.weight
        self.matrix = nn.Parameter(torch.zeros(211, 211), requires_grad=False)


class Reading(nn.Module):
    num_frozen_parameters = 7


def counts(model: nn.Module, *frozen: str) -> dict[str, tuple[str, str]]:
    counted = count_parameters(model, sizes=SIZES, frozen=frozen)
    return {each.name: (show_amount(each.total), show_amount(each.trainable)) for each in counted}


def test_dimensions_that_are_sizes_of_vocabularies_stay_symbols() -> None:
    assert amount_of((50, 10007), SIZES) == Counter({("words",): 50})
    assert amount_of((211, 211), SIZES) == Counter({("labels", "labels"): 1})
    assert amount_of((3, 4), SIZES) == Counter({(): 12})
    assert amount_of((), SIZES) == Counter({(): 1})


def test_items_that_a_component_adds_to_a_vocabulary_are_counted_apart() -> None:
    assert +amount_of((10009, 50), SIZES) == Counter({("words",): 50, (): 100})
    assert amount_of((10006,), SIZES) == {("words",): 1, (): -1}


@pytest.mark.parametrize(
    ("terms", "shown"),
    [
        ({}, "0"),
        ({(): 1}, "1"),
        ({(): 1200, ("words",): 50}, "1,200 + 50 × words"),  # noqa: RUF001
        ({("labels", "labels"): 1, (): 0}, "labels × labels"),  # noqa: RUF001
        ({(): -2, ("words",): 1}, "-2 + words"),
    ],
)
def test_amounts_are_written_for_people(terms: dict[tuple[str, ...], int], shown: str) -> None:
    assert show_amount(Counter(terms)) == shown


def test_amounts_are_numbers_in_json_where_they_can_be() -> None:
    number: Amount = Counter({(): 3, ("words",): 0})
    assert amount_as_json(number) == 3
    assert amount_as_json(Counter()) == 0
    assert amount_as_json(Counter({("words",): 1})) == "words"
    assert total_of([number, number])[()] == 6


def test_a_shared_parameter_counts_once() -> None:
    assert counts(Tied()) == {
        "matrix": ("labels × labels", "0"),  # noqa: RUF001
        "first": ("50 × words", "50 × words"),  # noqa: RUF001
        "second": ("words", "words"),
    }


def test_what_a_pattern_freezes_is_not_trainable() -> None:
    assert counts(Tied(), "^fir")["first"] == ("50 × words", "0")  # noqa: RUF001


def test_what_a_model_reads_and_does_not_hold_is_found() -> None:
    assert frozen_parameters(nn.Sequential(nn.Linear(2, 2), Reading())) == {"1": 7}


def test_placeholders_have_a_size_of_their_own_for_each_name() -> None:
    vocabularies = PlaceholderVocabularies()
    made = [vocabularies.labels(), vocabularies.words(), vocabularies.labels("senses")]
    assert all(isinstance(each, Vocabulary) for each in made)
    again = vocabularies.labels()
    assert again.items == made[0].items
    assert sorted(again.items)[:3] == ["B-X0", "B-X1", "B-X10"]
    sizes = vocabularies.sizes
    assert sizes.keys() == {"words", "labels", "senses"}
    assert len(set(sizes.values())) == 3
    assert [len(each) for each in made] == [sizes["labels"], sizes["words"] + 2, sizes["senses"]]


@pytest.mark.parametrize(
    ("cell_size", "projection_dim", "num_highway", "expected"),
    [(1024, 128, 1, 13_593_296), (2048, 256, 1, 28_027_728), (4096, 512, 2, 93_600_848)],
    ids=["small", "medium", "original"],
)
def test_the_published_bilms_have_their_published_sizes(
    cell_size: int, projection_dim: int, num_highway: int, expected: int
) -> None:
    raw = {
        "type": "bilm",
        "token_encoder": {
            "type": "char_cnn",
            "num_highway": num_highway,
            "projection_dim": projection_dim,
        },
        "context_layers": {
            "type": "elmo_lstm",
            "cell_size": cell_size,
            "projection_dim": projection_dim,
        },
    }
    vocabularies = PlaceholderVocabularies()
    with torch.device("meta"):
        model = parse(Model, raw, source="lm").build(vocabularies=vocabularies)
    counted = {each.name: each for each in count_parameters(model, sizes=vocabularies.sizes)}
    assert counted["bilm"].total == counted["bilm"].trainable == {(): expected}
