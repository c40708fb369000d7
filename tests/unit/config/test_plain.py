"""Plain values of configs, checked by pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import MinLen
from pydantic import ValidationError

from elmo_framework.config.plain import adapter, problems, read


def test_type_of_a_parameter_gets_one_adapter() -> None:
    hint = list[int]
    assert adapter(hint) is adapter(hint)


def test_equal_types_keep_their_own_messages() -> None:
    first, second = Literal["a", "b"], Literal["b", "a"]
    for hint, message in ((first, "'a' or 'b'"), (second, "'b' or 'a'")):
        with pytest.raises(ValidationError, match=message):
            read(hint, "c")


def test_url_of_a_relative_file_is_a_problem_of_its_key() -> None:
    with pytest.raises(ValidationError, match="write file:///absolute/path"):
        read(Path, "file://data.txt")


def test_an_empty_list_needs_an_item() -> None:
    with pytest.raises(ValidationError) as caught:
        read(Annotated[list[int], MinLen(1)], [])
    (problem,) = problems(caught.value, [], "seeds")
    assert str(problem) == "seeds: needs at least 1 item"
