"""Lists of a fixed length that hold components: `[regex, {type: ...}]`."""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import Annotated, Any, final

import jsonschema
import pytest
from annotated_types import Gt

from elmo_framework.config.introspect import describe, schema
from elmo_framework.config.parse import parse
from elmo_framework.config.registry import Registrable
from elmo_framework.config.resolve import filled, leaves, with_absolute_paths
from elmo_framework.config.types import Default, Injected, Lazy
from elmo_framework.errors import ConfigError


class Rule(Registrable, ABC):
    """What is done."""


@final
@Rule.register("add_in_test_of_shapes")
class Add(Rule):
    def __init__(self, file: Path, number: int = 1, seed: Injected[int] = 0) -> None:
        self.file, self.number, self.seed = file, number, seed


class Ruled(Registrable):
    """A component with pairs.

    Args:
        rules: what is done to whom, built at once.
        lazy_rules: the same, built by the owner.
    """

    def __init__(
        self,
        lazy_rules: Annotated[list[tuple[str, Lazy[Rule]]], Default([])],
        rules: list[tuple[Annotated[int, Gt(0)], Rule]] | None = None,
    ) -> None:
        self.rules, self.lazy_rules = rules, lazy_rules


ADD = {"type": "add_in_test_of_shapes", "file": "x"}
RAW: dict[str, Any] = {"rules": [[1, ADD], [2, {**ADD, "number": 5}]], "lazy_rules": [["a", ADD]]}


def ruled(raw: dict[str, Any]) -> Lazy[Ruled]:
    return parse(Ruled, raw, source="test")


def test_components_in_pairs_get_supplied_values() -> None:
    built = ruled(RAW).build(seed=7)

    assert built.rules is not None
    assert [(number, rule.number, rule.seed) for number, rule in built.rules] == [
        (1, 1, 7),
        (2, 5, 7),
    ]
    ((name, lazy),) = built.lazy_rules
    assert (name, lazy.path, lazy.build().seed) == ("a", "lazy_rules[0][1]", 7)


def test_pairs_are_filled_and_mean_the_same() -> None:
    once = filled(ruled(RAW))

    assert once["rules"][0] == [1, {**ADD, "number": 1}]
    assert filled(ruled(once)) == once
    assert filled(ruled({})) == {"lazy_rules": [], "rules": None}


def test_paths_in_pairs_are_found_and_made_absolute() -> None:
    found = {leaf.path: leaf.value for leaf in leaves(with_absolute_paths(ruled(RAW)))}

    assert found["rules[1][1].number"] == 5
    assert found["lazy_rules[0][0]"] == "a"
    assert found["rules[0][1].file"] == Path("x").absolute()


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([[1]], "rules[0]: expected [int > 0, Rule], not [1]"),
        ([[1, ADD, 2]], "rules[0]: expected [int > 0, Rule]"),
        ([1], "rules[0]: expected [int > 0, Rule], not 1"),
        ([[0, ADD]], "rules[0][0]: Input should be greater than 0, not 0"),
        ([[1, {"type": "ad"}]], "rules[0][1].type: unknown Rule 'ad'"),
        ([[1, {**ADD, "numbr": 1}]], "rules[0][1].numbr: unknown key of Add"),
    ],
)
def test_a_wrong_pair_is_refused_at_its_path(rules: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ruled({"rules": rules})

    assert str(caught.value.problems[0]).startswith(problem)
    assert not jsonschema.Draft202012Validator(schema(Ruled)).is_valid({"rules": rules})


def test_the_schema_accepts_pairs() -> None:
    jsonschema.Draft202012Validator(schema(Ruled)).validate(RAW)


def test_pairs_are_described() -> None:
    types = {row.key: row.type for row in describe(Ruled)}

    assert types == {
        "lazy_rules": "list[[str, Rule]]",
        "rules": "list[[int > 0, Rule]] | None",
    }


class Shape(Registrable, ABC):
    """A family with a key that all its members have.

    Args:
        color: set after the constructor.
    """

    def post_init(self, color: str = "black", rules: list[Rule] | None = None) -> None:
        self.color, self.rules = color, rules


@final
@Shape.register("circle")
class Circle(Shape):
    """A shape.

    Args:
        radius: of the circle.
    """

    def __init__(self, radius: int = 1) -> None:
        self.radius, self.color = radius, "none"


@Shape.register("dot")
def dot() -> Circle:
    """A circle without extent."""
    return Circle(0)


@pytest.mark.parametrize(("name", "radius"), [("circle", 1), ("dot", 0)])
def test_family_keys_are_applied_after_the_constructor(name: str, radius: int) -> None:
    lazy = parse(Shape, {"type": name, "color": "red", "rules": [ADD]}, source="test")
    shape = lazy.build(seed=1)
    assert isinstance(shape, Circle)
    assert (shape.radius, shape.color) == (radius, "red")
    assert [type(rule) for rule in shape.rules or ()] == [Add]


def test_family_keys_have_defaults() -> None:
    lazy = parse(Shape, "circle", source="test")
    assert lazy.build().color == "black"
    assert filled(lazy) == {"type": "circle", "radius": 1, "color": "black", "rules": None}


def test_family_keys_are_described_last() -> None:
    rows = {row.key: row.text for row in describe(Circle)}
    assert rows == {"radius": "of the circle.", "color": "set after the constructor.", "rules": ""}


def test_constructor_may_not_repeat_a_family_key() -> None:
    class Square(Shape):
        def __init__(self, color: str) -> None:
            self.color = color

    with pytest.raises(TypeError, match=r"Square\(color\): is a key of each member of the family"):
        Shape.register("square")(Square)
