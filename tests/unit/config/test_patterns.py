import pytest
from pydantic import ValidationError

from elmo_framework.config import plain
from elmo_framework.config.patterns import Regex, nearest, no_match

NAMES = ["encoder.lstm.weight_ih_l0", "encoder.lstm.bias_ih_l0", "projection.weight", "crf.start"]


def test_a_regular_expression_is_checked_where_it_is_read() -> None:
    assert plain.read(Regex, "weight_.h") == "weight_.h"
    with pytest.raises(ValidationError, match=r"regular expression \(missing \)"):
        plain.read(Regex, "(weight")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("_projection.weight", "projection.weight"),
        (".*encoder._module.weight_ih.*", "encoder.lstm.weight_ih_l0"),
        ("^crf\\.strat$", "crf.start"),
    ],
)
def test_the_nearest_name_comes_first(pattern: str, name: str) -> None:
    assert nearest(pattern, NAMES)[0] == name
    assert no_match(pattern, NAMES).startswith(f"{pattern!r} matches no parameter's name; the ")
