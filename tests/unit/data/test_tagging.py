from collections import Counter
from itertools import pairwise, product

import pytest

from elmo_framework.data.tagging import (
    LabeledSpan,
    allowed_transitions,
    beginnings,
    convert,
    marks_spans,
    parse_tag,
    scheme_of,
    spans,
    strays,
    tags_in_scheme,
)

IOB1 = ["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-LOC", "I-ORG", "O"]
BIO = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC", "B-ORG", "O"]
BIOUL = ["B-PER", "L-PER", "O", "U-LOC", "B-LOC", "L-LOC", "U-ORG", "O"]
BIOES = ["B-PER", "E-PER", "O", "S-LOC", "B-LOC", "E-LOC", "S-ORG", "O"]
SCHEMES = {"IOB1": IOB1, "BIO": BIO, "BIOUL": BIOUL, "BIOES": BIOES}
SPANS = [
    LabeledSpan(0, 2, "PER"),
    LabeledSpan(3, 4, "LOC"),
    LabeledSpan(4, 6, "LOC"),
    LabeledSpan(6, 7, "ORG"),
]


@pytest.mark.parametrize("tags", SCHEMES.values())
def test_all_schemes_encode_the_same_spans(tags):
    assert spans(tags) == SPANS


@pytest.mark.parametrize("tags", SCHEMES.values())
@pytest.mark.parametrize(("scheme", "expected"), SCHEMES.items())
def test_any_scheme_is_converted_to_any_other(tags, scheme, expected):
    assert convert(tags, scheme) == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O I-X I-X", [LabeledSpan(1, 3, "X")]),
        ("B-X I-Y I-Y", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 3, "Y")]),
        ("I-X O I-X", [LabeledSpan(0, 1, "X"), LabeledSpan(2, 3, "X")]),
        ("B-X B-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("L-X L-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("U-X I-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("B-X O L-X", [LabeledSpan(0, 1, "X"), LabeledSpan(2, 3, "X")]),
        ("E-X E-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("S-X I-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("I-X S-X", [LabeledSpan(0, 1, "X"), LabeledSpan(1, 2, "X")]),
        ("NN B-X VB I-X", [LabeledSpan(1, 2, "X"), LabeledSpan(3, 4, "X")]),
        ("", []),
    ],
)
def test_invalid_sequences_are_read_as_by_conlleval(tags, expected):
    assert spans(tags.split()) == expected


def test_a_label_may_hold_hyphens():
    assert parse_tag("B-C-ARG1") == ("B", "C-ARG1")
    assert spans(["B-C-ARG1", "I-C-ARG1"]) == [LabeledSpan(0, 2, "C-ARG1")]


def test_positional_parts_of_speech_mark_no_spans():
    tags = ("S----3MS2-", "VP-A-3MS--", "U---------")

    assert not spans(tags)
    assert not marks_spans(tags)
    assert tags_in_scheme(tags, None) == tags
    assert scheme_of(tags, {}) is None


@pytest.mark.parametrize("tag", ["X-PER", "X-", "B-", "B", "", "o", "-PER", "b-PER", "B--X"])
def test_an_impossible_tag_is_refused(tag):
    with pytest.raises(ValueError, match="is not a span tag") as raised:
        convert(["O", tag], "BIO")

    assert str(raised.value) == (
        f"{tag!r} is not a span tag; "
        "allowed: O, or one of B, I, L, U, E and S with a hyphen and a label, as B-PER"
    )


@pytest.mark.parametrize(
    ("sentence", "scheme"),
    [
        ("I-PER O I-LOC B-LOC", "IOB1"),
        ("I-NP B-NP I-NP O I-NP", "IOB1"),
        ("B-PER I-PER O B-LOC", "BIO"),
        ("B-PER I-PER", "BIO"),
        ("O", "BIO"),
        ("B-LOC O B-LOC I-LOC O B-PER I-LCO", "BIO"),
        ("B-PER O B-ORG I-LOC", "BIO"),
        ("O U-PER", "BIOUL"),
        ("B-PER L-PER I-LOC O", "BIOUL"),
        ("O S-PER", "BIOES"),
        ("B-PER E-PER O", "BIOES"),
        ("B-PER L-PER S-PER", None),
        ("NN VB", None),
        ("NN B-X", None),
    ],
)
def test_scheme_follows_from_tags_and_beginnings(sentence, scheme):
    tags = sentence.split()

    assert scheme_of(tags, Counter(beginnings(tags))) == scheme


def test_beginnings_are_the_tags_that_start_spans():
    assert list(beginnings(["B-X", "B-X", "I-X", "I-Y", "O", "I-Y", "U-Z", "NN", "U-Z"])) == [
        "B-X",
        "I-Y",
        "I-Y",
        "U-Z",
        "U-Z",
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_schemes_begin_spans_as_they_should(scheme):
    assert strays(Counter(beginnings(SCHEMES[scheme])), scheme) == []


def test_tags_not_allowed_by_the_scheme_are_strays():
    begun = {"B-X": 3, "I-X": 1, "U-X": 2, "E-Y": 1}

    assert strays(begun, "BIO") == ["E-Y", "I-X", "U-X"]
    assert strays(begun, "BIOUL") == ["E-Y", "I-X"]
    assert strays(begun, "IOB1") == ["B-X", "E-Y", "U-X"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_valid_sequences_are_those_that_convert_unchanged(scheme):
    prefixes = {"IOB1": "BI", "BIO": "BI", "BIOUL": "BIUL", "BIOES": "BISE"}[scheme]
    tags = ["O", *(f"{prefix}-{label}" for prefix in prefixes for label in "XY")]
    start, following, end = allowed_transitions(tags, scheme)

    def is_allowed(ids: tuple[int, ...]) -> bool:
        pairs = pairwise(ids)
        inner = all(following[before, after] for before, after in pairs)
        return bool(start[ids[0]] and inner and end[ids[-1]])

    for length in (1, 2, 3):
        for ids in product(range(len(tags)), repeat=length):
            sequence = [tags[i] for i in ids]
            assert is_allowed(ids) == (convert(sequence, scheme) == sequence), sequence


def test_tags_of_another_scheme_cannot_be_constrained():
    with pytest.raises(ValueError, match="is not a tag of the scheme") as raised:
        allowed_transitions(["O", "U-PER"], "BIO")

    assert str(raised.value) == (
        "'U-PER' is not a tag of the scheme BIO; allowed prefixes: O, B, I"
    )
