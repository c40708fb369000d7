import pytest

from elmo_framework.config.parse import parse
from elmo_framework.config.types import collecting_size_problems, require_size
from elmo_framework.errors import BuildError
from tests.unit.config.example import SOURCE, ComposeEncoder, Encoder

WRONG = {"type": "sized", "input_size": 7}


def test_omitted_or_correct_size_is_accepted() -> None:
    require_size("input_size", None, inferred=3)
    require_size("input_size", 3, inferred=3)


def test_a_wrong_size_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="input_size") as caught:
        require_size("input_size", 7, inferred=3)
    assert str(caught.value) == (
        "input_size is 7 but the input has dimension 3; remove input_size or set it to 3"
    )


def test_a_wrong_size_stops_the_build() -> None:
    with pytest.raises(BuildError, match=r"\(top level\): SizedEncoder: input_size is 7"):
        parse(Encoder, WRONG, source=SOURCE).build(input_dim=3)


def test_wrong_sizes_are_collected_while_building() -> None:
    encoders = [WRONG, {"type": "compose", "encoders": [WRONG, "sized"]}]
    lazy = parse(Encoder, {"type": "compose", "encoders": encoders}, source=SOURCE)
    with collecting_size_problems() as problems:
        built = lazy.build(input_dim=3)
    assert isinstance(built, ComposeEncoder)
    assert built.output_dim == 3
    assert [problem.path for problem in problems] == [
        "encoders[0].input_size",
        "encoders[1].encoders[0].input_size",
    ]
    assert str(problems[0]) == (
        "encoders[0].input_size: is 7 but the input has dimension 3; "
        "remove input_size or set it to 3"
    )


def test_collecting_ends_with_its_block() -> None:
    with collecting_size_problems():
        pass
    with pytest.raises(ValueError, match="input_size"):
        require_size("input_size", 7, inferred=3)
