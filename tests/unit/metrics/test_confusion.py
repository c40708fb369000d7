from collections import Counter
from typing import NamedTuple

from elmo_framework.metrics.confusion import Confusion


class Guess(NamedTuple):
    label: str


def counted(*pairs: tuple[str, str]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for prediction, gold in pairs:
        sums.update(Confusion().count(Guess(prediction), gold))
    return sums


def test_accuracy_is_the_share_of_right_labels():
    sums = counted(("a", "a"), ("b", "a"), ("c", "c"), ("a", "b"))

    assert Confusion().score(sums) == {"accuracy": 0.5}


def test_accuracy_of_nothing_is_zero():
    assert Confusion().score({}) == {"accuracy": 0.0}


def test_the_table_has_a_row_for_each_right_label_and_a_column_for_each_predicted_one():
    sums = counted(("a", "a"), ("a", "a"), ("b", "a"), ("c", "b"))

    assert Confusion().table(sums) == {
        "a": {"a": 2, "b": 1, "c": 0},
        "b": {"a": 0, "b": 0, "c": 1},
        "c": {"a": 0, "b": 0, "c": 0},
    }


def test_sums_of_parts_add_up_to_those_of_the_whole():
    first, second = counted(("a", "a"), ("b", "a")), counted(("a", "a"), ("b", "b"))

    whole = counted(("a", "a"), ("b", "a"), ("a", "a"), ("b", "b"))
    assert first + second == whole
    assert Confusion().score(first + second) == {"accuracy": 0.75}


def test_a_label_may_hold_any_character():
    sums = counted(('a/"b"\t', 'a/"b"\t'))

    assert Confusion().table(sums) == {'a/"b"\t': {'a/"b"\t': 1}}
