"""Trees in brackets: what a tag or a word may contain."""

from __future__ import annotations

import pytest

from plugins.allennlp_heads.trees import Constituent, ParsedSentence, as_brackets, parse_tree


@pytest.mark.parametrize(
    ("tag", "word", "written"),
    [
        ("(", "(", "(-LRB- -LRB-)"),
        ("]", "a)b", "(-RSB- a-RRB-b)"),
        ("CD", "10 000", "(CD 10_000)"),
        ("N N", "New\t\r\nYork", "(N_N New_York)"),
        ("CD", "10\u00a0000", "(CD 10\u00a0000)"),
        ("", "", "(_ _)"),
    ],
)
def test_tag_and_word_are_written_as_one_piece_each(tag: str, word: str, written: str) -> None:
    sentence = ParsedSentence((word, "b"), None, (tag, "X"))
    text = as_brackets((Constituent(0, 2, "NP"),), sentence)
    assert text == f"(TOP (NP {written} (X b)))"
    words, tree = parse_tree(text)
    assert (len(words), tree.constituents) == (2, (Constituent(0, 2, "NP"),))


def test_no_break_space_is_a_part_of_a_word() -> None:
    words, tree = parse_tree("(NP (CD 10\u00a0000)\t( NNS people ))")
    assert words == ("10\u00a0000", "people")
    assert tree.tags == ("CD", "NNS")
