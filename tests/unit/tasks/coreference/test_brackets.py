import pytest

from elmo_framework.data.formats.columns import CellError
from elmo_framework.tasks.coreference.brackets import Bracketed, decode, encode


def decoded(*cells: str) -> list[tuple[str, int, int]]:
    return sorted(tuple(held) for held in decode(cells))


def test_mentions_may_hold_one_another():
    assert decoded("(1|(2", "(3)", "2)", "1)") == [("1", 0, 3), ("2", 0, 2), ("3", 1, 1)]


def test_mentions_of_two_entities_may_cross():
    assert decoded("(1", "(2", "1)", "2)") == [("1", 0, 2), ("2", 1, 3)]


def test_of_one_entity_the_bracket_opened_last_is_closed_first():
    assert decoded("(1", "(1", "1)", "1)") == [("1", 0, 3), ("1", 1, 2)]


def test_all_openings_of_a_cell_come_before_its_closings():
    assert decoded("(1", "1)|(1", "1)") == [("1", 0, 2), ("1", 1, 1)]
    assert decoded("1)|(1") == [("1", 0, 0)]
    assert decoded("(1", "1)|(2", "2)") == [("1", 0, 1), ("2", 1, 2)]


def test_what_is_opened_and_closed_at_one_word_is_a_mention_of_one_word():
    assert decoded("(1|1)") == decoded("(1)") == [("1", 0, 0)]
    assert decoded("(1", "(1|1)", "1)") == [("1", 0, 2), ("1", 1, 1)]
    assert decoded("(1|(1|1)", "1)") == [("1", 0, 0), ("1", 0, 1)]


def test_a_mention_may_stand_there_twice():
    assert decoded("(1)|(2)|(1)") == [("1", 0, 0), ("1", 0, 0), ("2", 0, 0)]


def test_a_hyphen_an_underscore_and_nothing_hold_no_bracket():
    assert decoded("-", "(1", "_", "", "1)") == [("1", 1, 4)]


@pytest.mark.parametrize(
    ("cells", "index", "message"),
    [
        (["-", "(1", "-"], 1, "'(1' is not closed in its sentence"),
        (["(1", "2)"], 1, "'2' is closed but was not opened"),
        (["-", "1"], 1, "found '1', expected pieces such as '(3', '3)' and '(3)' with '|' between"),
        (["(1))"], 0, "found '(1))', expected pieces"),
        (["*"], 0, "found '*', expected pieces"),
        (["(1)|"], 0, "found '(1)|', expected pieces"),
        (["1)|(2)"], 0, "'1' is closed but was not opened"),
        (["(1|(1", "1)"], 0, "'(1' is not closed in its sentence"),
    ],
)
def test_a_bad_cell_is_named(cells: list[str], index: int, message: str):
    with pytest.raises(CellError) as raised:
        decode(cells)

    assert str(raised.value).startswith(message)
    assert raised.value.position == index


def test_what_is_written_is_read_again():
    mentions = [("0", 0, 4), ("0", 0, 1), ("2", 1, 3), ("0", 1, 1), ("3", 4, 4), ("12", 2, 2)]

    cells = encode([Bracketed(*held) for held in mentions], 6)

    assert decoded(*cells) == sorted(mentions)
    assert cells[0] == "(0|(0"
    assert cells[5] == "-"
