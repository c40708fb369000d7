"""Constituents above words, from bracketed trees."""

from pathlib import Path

import pytest

from elmo_framework.errors import DataError
from elmo_framework.tasks.tagging import ConstituentReader

TREES = """\
( (S (NP-SBJ-1 (DT the) (NN dog) ) (VP (VBD barked) (S (NP (-NONE- *-1) ) (ADVP=2 (RB so) ))) ))
(TOP(NP(NN rain) (-LRB- -LRB-)))
"""


def read(folder: Path, text: str, level: int = 1) -> list[tuple[tuple[str, ...], object]]:
    path = folder / "trees.mrg"
    path.write_text(text)
    return [(each.words, each.tags) for each in ConstituentReader(level=level).read(path)]


def test_tag_is_the_constituent_at_a_level_above_the_word(tmp_path: Path) -> None:
    words = ("the", "dog", "barked", "so")
    rain = ("rain", "(")
    assert read(tmp_path, TREES) == [(words, ("NP", "NP", "VP", "ADVP")), (rain, ("NP", "NP"))]
    assert read(tmp_path, TREES, 2) == [(words, ("S", "S", "S", "S")), (rain, ("NONE", "NONE"))]
    assert read(tmp_path, TREES, 3)[0] == (words, ("NONE", "NONE", "NONE", "VP"))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(S (NN a)", "unclosed brackets"),
        ("(NN a))", "something follows the tree"),
        (")", "closes nothing"),
        ("(S (NN a) b)", "'b' has no part of speech"),
        ("word", "'word' has no part of speech"),
        ("(S (NN a)) (S (NN b))", "something follows the tree"),
    ],
)
def test_invalid_tree_is_an_error_with_its_line(tmp_path: Path, tree: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as raised:
        read(tmp_path, f"(S (NN a))\n{tree}\n")
    assert raised.value.line == 2
