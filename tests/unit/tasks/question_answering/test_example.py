"""Words of a text and the characters that they are."""

from __future__ import annotations

import pytest

from elmo_framework.data.tokenizer import SpacyTokenizer
from elmo_framework.tasks.question_answering.example import PassageQuestion, Span, TokenizedText

TEXT = TokenizedText.of("  Anna won 24\u201310,  in\nOslo.", SpacyTokenizer())


def test_words_are_at_their_offsets():
    assert TEXT.words == ("Anna", "won", "24\u201310", ",", "in", "Oslo", ".")
    assert [TEXT.text[start:end] for start, end in TEXT.offsets] == list(TEXT.words)


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("Anna", Span(0, 0)),
        ("won 24\u201310", Span(1, 2)),
        ("24", Span(2, 2)),  # a part of a word is the whole word
        ("o", Span(1, 1)),
        ("10,  in\nOsl", Span(2, 5)),
        ("  Anna ", Span(0, 0)),  # spaces at the ends belong to no word
        ("\n", None),
        ("  Anna won 24\u201310,  in\nOslo.", Span(0, 6)),
    ],
)
def test_a_span_is_the_words_that_a_piece_touches(piece, expected):
    start = TEXT.text.index(piece)

    assert TEXT.span(start, start + len(piece)) == expected


def test_empty_span_of_characters_has_no_words():
    assert TEXT.span(3, 3) is None


def test_span_is_a_piece_of_the_original_text():
    start, end = TEXT.characters(Span(2, 5))

    assert TEXT.text[start:end] == "24\u201310,  in\nOslo"


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_text_without_words_is_refused(text):
    nothing = TokenizedText.of(text, SpacyTokenizer())

    with pytest.raises(ValueError, match=r"^the passage has no words: "):
        PassageQuestion("1", nothing, TEXT, None, None)
    with pytest.raises(ValueError, match=r"^the question has no words: "):
        PassageQuestion("1", TEXT, nothing, None, None)
