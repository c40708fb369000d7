# No `from __future__ import annotations`: the classes are local, so their hints are evaluated here.
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import pytest
from annotated_types import Gt, MinLen

from elmo_framework.config import registry
from elmo_framework.config.parse import parse
from elmo_framework.config.registry import (
    Registrable,
    default_member,
    families,
    members,
    registered,
    snake_case,
)
from elmo_framework.config.signature import parameters, replaced, show
from elmo_framework.config.types import Default, ExistingPath, Injected, Lazy, Local
from elmo_framework.errors import ConfigError
from tests.unit.config.example import CrfTagger, Encoder, Head, LayerMix, LstmEncoder, Model, Warmup

T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    encoder: Lazy[Encoder]


def refusal(hint: Any, default: Any = ...) -> str:
    """Register an encoder with one parameter of a type, and return what is said against it."""

    class Tried(Encoder):
        def __init__(self, held: Any) -> None: ...

    Tried.__init__.__annotations__["held"] = hint
    Tried.__init__.__defaults__ = None if default is ... else (default,)
    with pytest.raises(TypeError) as caught:
        Encoder.register("tried")(Tried)
    assert "tried" not in members(Encoder)
    return str(caught.value).removeprefix("refusal.<locals>.")


WHERE = "a component or a dataclass may be alone, in list[...], in dict[str, ...], in tuple[A, B]"


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (tuple[Encoder, ...], "tuple[Encoder, Ellipsis]"),
        (Encoder | LayerMix, "Encoder | LayerMix"),
        (Lazy[Encoder] | Lazy[LayerMix] | None, "Lazy[Encoder] | Lazy[LayerMix] | None"),
        (Encoder | str, "Encoder | str"),
        (dict[int, Encoder], "dict[int, Encoder]"),
        (list[set[Encoder]], "set[Encoder]"),
        (Warmup | int, "Warmup | int"),
        (Lazy[Warmup], "Lazy[Warmup]"),
        (Lazy[int], "Lazy[int]"),
    ],
)
def test_component_in_unsupported_position_is_refused(hint: Any, shown: str) -> None:
    assert refusal(hint).startswith(f"Tried(held): {shown}: ")


@pytest.mark.parametrize("hint", [list[Injected[int]], dict[str, Local[int] | None]])
def test_a_supplied_part_of_a_parameter_is_refused(hint: Any) -> None:
    said = "Tried(held): Injected and Local mark a whole parameter, not a part of its type"
    assert refusal(hint) == said


def test_unsupported_type_error_lists_supported_types() -> None:
    assert refusal(Encoder | LayerMix) == (
        f"Tried(held): Encoder | LayerMix: {WHERE} or with `| None`; "
        "Lazy[...] takes a component only"
    )


def test_options_that_hold_a_component_are_refused() -> None:
    assert refusal(list[Holder]) == (
        "Tried(held): Holder.encoder: a dataclass of options has plain values only; "
        "let Holder inherit Registrable, or take encoder as another parameter"
    )


@pytest.mark.parametrize("default", ["scalar_mix", {}, ()])
def test_the_default_of_a_component_can_be_written(default: Any) -> None:
    message = "Tried(held): the default of a component is None or Annotated[..., Default(JSON)]"
    assert refusal(LayerMix, default) == message


class Hidden(Encoder):
    def __init__(self, **options: int) -> None: ...


class Bare(Encoder):
    def __init__(self, width) -> None: ...  # type: ignore[no-untyped-def]


class Typed(Encoder):
    def __init__(self, type: str) -> None: ...


class Absent(Encoder):
    def __init__(self, width: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (Hidden, r"Hidden\(options\): a component takes no \*args and no \*\*kwargs"),
        (Bare, r"Bare\(width\): has no type annotation"),
        (Typed, r"Typed\(type\): `type` is the key that names the component"),
        (Absent, r"Absent: name 'Nowhere' is not defined; .* needed at run time"),
    ],
)
def test_a_component_may_not_hide_its_arguments(member: type[Encoder], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Encoder.register("refused")(member)


def test_a_constructor_may_name_its_own_class() -> None:
    class Nested(Encoder):
        def __init__(self, inner: "Lazy[Nested] | None" = None) -> None: ...

    assert str(parameters(Nested)["inner"].shape) == "Nested | None"


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(
        ValueError, match=r"^Encoder 'lstm' is already tests\.unit\.config\.example\.Ls"
    ):
        Encoder.register("lstm")(LstmEncoder)


def test_a_member_inherits_its_family() -> None:
    with pytest.raises(TypeError, match=r"^LstmEncoder does not inherit LayerMix$"):
        LayerMix.register("lstm")(LstmEncoder)


def as_encoder() -> Encoder: ...  # type: ignore[empty-body]
def as_head() -> Head[int]: ...  # type: ignore[empty-body]
def as_mix() -> LayerMix: ...  # type: ignore[empty-body]
def as_either() -> Encoder | None: ...
def as_nothing(): ...  # type: ignore[no-untyped-def]
def as_absent() -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821


def test_a_function_is_a_member_by_its_return_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._members, Model, dict(members(Model)))
    monkeypatch.setitem(registry._members, Encoder, dict(members(Encoder)))

    assert Encoder.register("as_encoder")(as_encoder) is as_encoder
    Model.register("as_head")(as_head)

    assert members(Encoder)["as_encoder"] is as_encoder
    assert members(Head)["as_head"] is members(Model)["as_head"] is as_head
    assert "as_head" not in members(CrfTagger)
    assert registered("as_head") == [as_head]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (as_mix, "^as_mix does not return Encoder$"),
        (as_either, "^as_either does not return Encoder$"),
        (as_nothing, "^as_nothing: annotate the class of the component it returns$"),
        (as_absent, "^as_absent: name 'Nowhere' is not defined; .* needed at run time$"),
    ],
)
def test_function_must_be_annotated_to_return_its_family(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Encoder.register("refused")(function)
    assert "refused" not in members(Encoder)


def test_attributes_that_are_read_from_the_class_are_required() -> None:
    class Reader(Registrable, ABC):
        """Reads examples.

        Attributes:
            example_type: their class.
        """

        class_attributes = ("example_type",)
        example_type: ClassVar[type]

    class TextReader(Reader):
        example_type = str

    class OpenReader(Reader): ...

    def text_reader() -> TextReader:
        return TextReader()

    def any_reader() -> Reader:
        return TextReader()

    assert Reader.register("text")(text_reader) is text_reader
    with pytest.raises(TypeError, match=r"any_reader: Reader has no attribute 'example_type'"):
        Reader.register("any")(any_reader)
    with pytest.raises(TypeError) as error:
        Reader.register("open")(OpenReader)
    assert str(error.value).endswith(
        "OpenReader has no attribute 'example_type'; "
        "set `example_type = ...` in the class: their class."
    )
    assert str(error.value).count("OpenReader") == 1


def test_the_register_of_abstract_classes_does_not_win() -> None:
    class First(Registrable, ABC, Generic[T]): ...

    class Last(ABC, Generic[T], Registrable): ...

    @First.register("x")
    class FirstMember(First[int]): ...

    @Last.register("x")
    class LastMember(Last[int]): ...

    assert (members(First), members(Last)) == ({"x": FirstMember}, {"x": LastMember})


def test_a_family_and_the_classes_between_share_their_names() -> None:
    assert members(Head) == members(Model)
    assert members(Head).keys() == {"crf_tagger"}


def test_a_default_that_is_not_registered_is_none() -> None:
    class Sampler(Registrable, ABC):
        default_member = "uniform"

        @abstractmethod
        def draw(self) -> int: ...

    assert default_member(Sampler) is None
    with pytest.raises(ConfigError, match=r"type: is missing; choose from \(none\)"):
        parse(Sampler, {}, source="x.jsonnet")


def test_supplied_parameters_may_be_optional() -> None:
    class Member(Registrable):
        def __init__(
            self,
            held: Injected[Path] | None,
            near: Local[int] = 3,
            both: Annotated[Injected[int], "note"] = 3,
        ) -> None: ...

    assert all(parameter.supply for parameter in parameters(Member).values())


def test_a_dataclass_component_knows_its_factories() -> None:
    @dataclass(kw_only=True)
    class Member(Registrable):
        names: list[str] = field(default_factory=lambda: ["a"])
        mix: Annotated[Lazy[LayerMix], Default("scalar_mix")]

    assert parameters(Member)["names"].default == ["a"]
    assert parse(Member, {}, source="x").build().names == ["a"]


def test_a_class_that_forgot_to_be_registrable_is_named() -> None:
    class Reader: ...

    class Member(Registrable):
        def __init__(self, reader: Reader) -> None: ...

    with pytest.raises(
        TypeError, match=r"^Reader cannot be written in a config: let it inherit Re"
    ):
        parse(Member, {"reader": "x"}, source="x")


def test_types_are_shown_for_people() -> None:
    assert show(dict[str, list[Path]] | None) == "dict[str, list[Path]] | None"


def test_bounds_and_existing_paths_are_shown_for_people() -> None:
    assert show(ExistingPath | None) == "Path | None"
    assert show(Annotated[list[int], MinLen(1)]) == "list[int] length >= 1"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, str),
        (int | None, str | None),
        (dict[str, list[int]], dict[str, list[str]]),
        (Annotated[int, Gt(0)] | None, Annotated[str, Gt(0)] | None),
        (tuple[int, ...], tuple[str, ...]),
        (Literal[1] | int, Literal[1] | str),
    ],
)
def test_type_is_replaced_everywhere(hint: Any, expected: Any) -> None:
    assert replaced(hint, int, str) == expected


def test_all_families_are_listed_by_name_in_snake_case() -> None:
    listed = families()
    assert {"encoder", "layer_mix", "token_embedder", "bi_lm"} <= listed.keys()
    assert list(listed) == sorted(listed)


def test_names_are_written_in_snake_case() -> None:
    assert snake_case("TokenEmbedder") == snake_case("token_embedder") == "token_embedder"
