from collections import Counter
from collections.abc import Mapping

import pytest
import torch
from torch import nn

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.experiment.parameter_counts import (
    Amount,
    PlaceholderVocabularies,
    Trials,
    amount_as_json,
    count_parameters,
    frozen_parameters,
    show_amount,
    total_of,
)
from elmo_framework.model.model import Model

components.load()

FIRST, SECOND = {"words": 10, "labels": 7}, {"words": 12, "labels": 23}
GROWTHS = {"words": 2, "labels": 16}


class Tied(nn.Module):
    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        words, labels = sizes["words"], sizes["labels"]
        self.first = nn.Linear(50, words, bias=False)
        self.second = nn.Linear(50, words)
        self.second.weight = self.first.weight
        self.matrix = nn.Parameter(torch.zeros(labels, labels), requires_grad=False)


class Reading(nn.Module):
    num_frozen_parameters = 7


TRIALS = Trials(Tied(FIRST), Tied(SECOND), FIRST, GROWTHS)


def counts(*frozen: str) -> dict[str, tuple[str, str]]:
    counted = count_parameters(TRIALS, frozen=frozen)
    return {each.name: (show_amount(each.total), show_amount(each.trainable)) for each in counted}


@pytest.mark.parametrize(
    ("dim", "larger", "shown"),
    [
        (10, 10, "10"),
        (10, 12, "words"),
        (12, 14, "2 + words"),
        (9, 11, "-1 + words"),
        (7, 23, "labels"),
        (30, 36, "3 × words"),  # noqa: RUF001
        (67, 87, "40 + labels + 2 × words"),  # noqa: RUF001
    ],
)
def test_a_dimension_is_told_by_how_it_grows(dim: int, larger: int, shown: str) -> None:
    assert show_amount(TRIALS.amount(dim, larger)) == shown


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
    assert counts() == {
        "matrix": ("labels × labels", "0"),  # noqa: RUF001
        "first": ("50 × words", "50 × words"),  # noqa: RUF001
        "second": ("words", "words"),
    }


def test_what_a_pattern_freezes_is_not_trainable() -> None:
    assert counts("^fir")["first"] == ("50 × words", "0")  # noqa: RUF001


def test_what_a_model_reads_and_does_not_hold_is_found() -> None:
    assert frozen_parameters(nn.Sequential(nn.Linear(2, 2), Reading())) == {"1": 7}


def test_placeholders_grow_by_another_amount_for_each_name() -> None:
    first, second = PlaceholderVocabularies(), PlaceholderVocabularies(is_larger=True)
    made = [[each.labels(), each.words(), each.labels("senses")] for each in (first, second)]
    assert [len(each) for each in made[0]] == [101, 10007 + 2, 101]
    assert [len(each) for each in made[1]] == [101 + 2, 10007 + 2 + 16, 101 + 128]
    assert first.labels().items == made[0][0].items
    assert sorted(made[0][0].items)[:3] == ["B-X0", "B-X1", "B-X10"]
    assert first.sizes == {"labels": 101, "words": 10007, "senses": 101}


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
    trials = Trials(model, model, {}, {})
    counted = {each.name: each for each in count_parameters(trials)}
    assert counted["bilm"].total == counted["bilm"].trainable == {(): expected}
