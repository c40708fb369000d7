import pytest

from elmo_framework.data.formats.columns import CellError
from elmo_framework.data.formats.conll2012 import tags_of_brackets
from elmo_framework.tasks.srl.columns import cells_of

COLUMN = ["(ARG0*", "*", "*)", "(V*)", "*", "(C-ARG0*)", "(ARGM-TMP*", "*)"]
TAGS = ["B-ARG0", "I-ARG0", "I-ARG0", "B-V", "O", "B-C-ARG0", "B-ARGM-TMP", "I-ARGM-TMP"]


def test_brackets_are_tags():
    assert tags_of_brackets(COLUMN, "argument") == TAGS


def test_tags_are_brackets():
    assert cells_of(TAGS) == COLUMN


def test_adjacent_arguments_are_separate():
    assert tags_of_brackets(["(A0*)", "(A0*)"], "argument") == ["B-A0", "B-A0"]
    assert cells_of(["B-A0", "B-A0"]) == ["(A0*)", "(A0*)"]


def test_inside_tag_without_beginning_starts_an_argument():
    assert cells_of(["O", "I-A0", "I-A1"]) == ["*", "(A0*)", "(A1*)"]


@pytest.mark.parametrize(
    ("cells", "position", "message"),
    [
        (["(A1)", "(A0*", "*"], 1, "the argument 'A0' does not end"),
        (["*", "*)"], 1, "'*)' ends an argument that has not begun"),
        (["(A0*", "(A1*)", "*)"], 1, "'(A1*)' begins inside the argument 'A0'"),
        (
            ["(A0(V*)*)"],
            0,
            "'(A0(V*)*)' is not a valid cell for an argument; allowed: '(LABEL*', '*)', ",
        ),
        (["-"], 0, "'-' is not a valid cell for an argument"),
    ],
)
def test_malformed_cell_is_refused_with_its_place(cells, position, message):
    with pytest.raises(CellError) as raised:
        tags_of_brackets(cells, "argument")

    assert raised.value.position == position
    assert str(raised.value).startswith(message)
