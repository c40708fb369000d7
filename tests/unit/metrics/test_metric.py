"""What the names of scores tell."""

from __future__ import annotations

import pytest

from elmo_framework.metrics.metric import is_of_one_type


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f1-measure-PER", True),
        ("f1-measure-overall", False),
        ("precision-PER", False),
        ("loss", False),
    ],
)
def test_a_score_of_one_type_stands_beside_one_over_all(name: str, expected: bool) -> None:
    assert is_of_one_type(name, ["loss", "f1-measure-overall", "precision"]) is expected


def test_without_a_score_over_all_types_none_is_of_one() -> None:
    assert not is_of_one_type("f1-measure-PER", ["f1-measure-PER", "loss"])
