from itertools import pairwise, product

import pytest

from elmo_framework.data.tagging import (
    Span,
    allowed_transitions,
    convert,
    parse_tag,
    scheme_of,
    spans,
)

IOB1 = ["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-LOC", "I-ORG", "O"]
BIO = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC", "B-ORG", "O"]
BIOUL = ["B-PER", "L-PER", "O", "U-LOC", "B-LOC", "L-LOC", "U-ORG", "O"]
SPANS = [Span(0, 2, "PER"), Span(3, 4, "LOC"), Span(4, 6, "LOC"), Span(6, 7, "ORG")]


@pytest.mark.parametrize("tags", [IOB1, BIO, BIOUL])
def test_all_schemes_stand_for_the_same_spans(tags):
    assert spans(tags) == SPANS


@pytest.mark.parametrize("tags", [IOB1, BIO, BIOUL])
@pytest.mark.parametrize(("scheme", "expected"), [("IOB1", IOB1), ("BIO", BIO), ("BIOUL", BIOUL)])
def test_any_scheme_is_converted_to_any_other(tags, scheme, expected):
    assert convert(tags, scheme) == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O I-X I-X", [Span(1, 3, "X")]),
        ("B-X I-Y I-Y", [Span(0, 1, "X"), Span(1, 3, "Y")]),
        ("I-X O I-X", [Span(0, 1, "X"), Span(2, 3, "X")]),
        ("B-X B-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("L-X L-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("U-X I-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("B-X O L-X", [Span(0, 1, "X"), Span(2, 3, "X")]),
        ("NN B-X VB I-X", [Span(1, 2, "X"), Span(3, 4, "X")]),
        ("", []),
    ],
)
def test_malformed_sequences_are_read_as_the_conll_scorer_reads_them(tags, expected):
    assert spans(tags.split()) == expected


def test_a_label_may_hold_hyphens():
    assert parse_tag("B-C-ARG1") == ("B", "C-ARG1")
    assert spans(["B-C-ARG1", "I-C-ARG1"]) == [Span(0, 2, "C-ARG1")]


@pytest.mark.parametrize("tag", ["X-PER", "X-", "B-", "B", "", "o", "-PER", "b-PER"])
def test_an_impossible_tag_is_refused(tag):
    with pytest.raises(ValueError, match="is no tag of a span") as raised:
        convert(["O", tag], "BIO")

    assert str(raised.value) == (
        f"{tag!r} is no tag of a span; "
        "allowed: O, or one of B, I, L and U with a hyphen and a label, as B-PER"
    )


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "I-PER", "I-LOC", "B-LOC"], "IOB1"),
        (["O", "B-PER", "I-PER", "B-LOC"], "BIO"),
        (["O", "B-PER", "I-PER"], "BIO"),
        (["O"], "BIO"),
        (["O", "U-PER"], "BIOUL"),
        (["O", "B-PER", "L-PER", "I-LOC"], "BIOUL"),
        (["O", "B-PER", "I-LOC"], None),
        (["NN", "VB"], None),
    ],
)
def test_the_scheme_is_told_from_a_set_of_tags(tags, scheme):
    assert scheme_of(tags) == scheme


@pytest.mark.parametrize("scheme", ["IOB1", "BIO", "BIOUL"])
def test_a_sequence_is_allowed_just_when_converting_it_changes_nothing(scheme):
    prefixes = {"IOB1": "BI", "BIO": "BI", "BIOUL": "BIUL"}[scheme]
    tags = ["O", *(f"{prefix}-{label}" for prefix in prefixes for label in "XY")]
    allowed = allowed_transitions(tags, scheme)

    def is_allowed(ids: tuple[int, ...]) -> bool:
        pairs = pairwise(ids)
        inner = all(allowed.inner[before, after] for before, after in pairs)
        return bool(allowed.start[ids[0]] and inner and allowed.end[ids[-1]])

    for length in (1, 2, 3):
        for ids in product(range(len(tags)), repeat=length):
            sequence = [tags[i] for i in ids]
            assert is_allowed(ids) == (convert(sequence, scheme) == sequence), sequence


def test_tags_of_another_scheme_cannot_be_constrained():
    with pytest.raises(ValueError, match="is no tag of the scheme") as raised:
        allowed_transitions(["O", "U-PER"], "BIO")

    assert str(raised.value) == ("'U-PER' is no tag of the scheme BIO; allowed prefixes: O, B, I")
