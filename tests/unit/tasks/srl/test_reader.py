import logging
from dataclasses import replace
from pathlib import Path

import pytest

from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.example import SrlExample
from elmo_framework.tasks.srl.reader import Conll2005Reader, DeepSrlReader, SrlReader

FILE = Path(__file__).parents[3] / "fixtures/srl/sentences.gold_conll"
LINE = "a 0 0 Rain NN * {} - - * {} -\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "file"
    file.write_text(text)
    return file


def test_every_predicate_is_an_example():
    examples = list(SrlReader().read(FILE))

    assert [" ".join(example.words[:2]) for example in examples] == [
        "Ann fed",
        "Cats hunt",
        "Cats hunt",
        "Good morning",
        "Two dogs",
        "Milk ,",
        "Ann came",
        "Ann came",
    ]
    assert examples[2].propositions == (
        Proposition(4, ("O", "O", "B-R-ARG1", "B-ARG0", "B-V", "O")),
    )


def test_predicate_of_two_words_has_its_stated_position():
    example = list(SrlReader().read(FILE))[4]

    assert example.propositions == (
        Proposition(2, ("B-ARG1", "I-ARG1", "B-V", "I-V", "B-ARGM-TMP", "O")),
    )


def test_sentence_without_predicates_is_outside_or_skipped():
    kept = list(SrlReader().read(FILE))
    left = list(SrlReader(skip_sentences_without_predicates=True).read(FILE))

    assert kept[3] == SrlExample(
        ("Good", "morning", "!"), (Proposition(None, ("O", "O", "O")),), targets=("-", "-", "-")
    )
    assert left == [*kept[:3], *kept[4:]]


def test_max_instances_limits_reading():
    assert list(SrlReader(max_instances=2).read(FILE)) == list(SrlReader().read(FILE))[:2]


def test_longer_sentences_can_be_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    kept = list(SrlReader(max_sentence_length=6).read(FILE))
    assert caplog.messages == [f"{FILE}: skipped 1 sentence of more than 6 words"]

    assert kept == [each for each in SrlReader().read(FILE) if len(each.words) <= 6]
    file = written(tmp_path, "0 Go ! ||| B-V O\n1 Cats hunt mice ||| B-A0 B-V B-A1\n")
    assert [each.words for each in DeepSrlReader(max_sentence_length=2).read(file)] == [("Go", "!")]


def test_files_are_found_by_a_pattern(tmp_path):
    for name in ["b/x.gold_conll", "a/y.gold_conll", "a/z.auto_conll"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(LINE.format("- -", "").replace("Rain", name[0]))

    examples = list(SrlReader().read(tmp_path / "**/*gold_conll"))

    assert [example.words for example in examples] == [("a",), ("b",)]


def test_stated_predicate_position_wins_over_its_v(tmp_path):
    rows = ["side NN * side 01 - - * (V*) (V*)", "- HYPH * - - - - * * *"]
    rows += ["stepping VBG * step 01 - - * * (C-V*)"]
    text = "".join(f"a 0 {number} {row} -\n" for number, row in enumerate(rows))

    examples = list(SrlReader().read(written(tmp_path, text)))

    assert [example.propositions for example in examples] == [
        (Proposition(0, ("B-V", "O", "O")),),
        (Proposition(2, ("B-V", "O", "B-C-V")),),
    ]


def test_column_without_v_uses_the_word_with_a_frame(tmp_path):
    (example,) = SrlReader().read(written(tmp_path, LINE.format("rain 01", "(ARG1*)")))

    assert example.propositions == (Proposition(0, ("B-ARG1",)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE.format("rain 01", "(V*"), "file:1: the argument 'V' does not end"),
        (LINE.format("rain 01", "") * 2, "file:1: found 2 predicates and 0 columns of arguments"),
    ],
)
def test_malformed_columns_are_refused_with_their_line(tmp_path, text, message):
    with pytest.raises(DataError) as raised:
        list(SrlReader().read(written(tmp_path, text)))

    assert message in str(raised.value)


CONLL2005 = """\
The   (S* DT  -    (A0*
# NN - *)
fell  *)  VBD fall (V*)

Rain * NN -
"""


def test_the_columns_of_conll_2005_are_read(tmp_path):
    file = written(tmp_path, CONLL2005.replace("# NN", "# * NN"))

    examples = list(Conll2005Reader(target_column=3).read(file))

    assert examples == [
        SrlExample(
            ("The", "#", "fell"),
            (Proposition(2, ("B-A0", "I-A0", "B-V")),),
            targets=("-", "-", "fall"),
        ),
        SrlExample(("Rain",), (Proposition(None, ("O",)),), targets=("-",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONLL2005, "file:2: found 4 columns, expected 5 as on line 1: '# NN - *)'"),
        ("Rain NN -\n", "file:1: found 3 columns, expected at least 4 with blanks between them"),
        ("Rain NN -\nRain * NN -\n", "file:1: found 3 columns, expected at least 4"),
        ("Rain * NN rain\n", "file:1: found 1 predicate and 0 columns of arguments"),
        ("\n", "file: this file has no sentences"),
    ],
)
def test_malformed_conll_2005_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError) as raised:
        list(Conll2005Reader(target_column=3).read(written(tmp_path, text)))

    assert message in str(raised.value)


DEEP_SRL = """\
2 My cats love hats . ||| B-A0 I-A0 B-V B-A1 O
0 Run ! ||| B-V O

-1 Rain . ||| O O
"""


def test_the_lines_of_deep_srl_are_read(tmp_path):
    file = written(tmp_path, DEEP_SRL)
    examples = list(DeepSrlReader().read(file))

    assert examples == [
        SrlExample(
            ("My", "cats", "love", "hats", "."),
            (Proposition(2, ("B-A0", "I-A0", "B-V", "B-A1", "O")),),
        ),
        SrlExample(("Run", "!"), (Proposition(0, ("B-V", "O")),)),
        SrlExample(("Rain", "."), (Proposition(None, ("O", "O")),)),
    ]
    assert list(DeepSrlReader(skip_sentences_without_predicates=True).read(file)) == examples[:2]


def test_lines_with_increasing_predicates_are_one_sentence(tmp_path):
    lines = [(-1, "O O"), (0, "B-V O"), (1, "O B-V"), (1, "B-A0 B-V"), (-1, "O O"), (-1, "O O")]
    text = "".join(f"{place} Go on ||| {tags}\n" for place, tags in lines)

    examples = list(DeepSrlReader().read(written(tmp_path, f"{text}1 We go ||| B-A0 B-V\n")))

    assert [(p.predicate, " ".join(p.tags)) for e in examples for p in e.propositions] == [
        *((None if place < 0 else place, tags) for place, tags in lines),
        (1, "B-A0 B-V"),
    ]
    numbers = {}
    found = [numbers.setdefault(id(example.words), len(numbers)) for example in examples]
    assert found == [0, 1, 1, 2, 3, 4, 5]


def test_only_a_space_or_a_tab_ends_a_word(tmp_path):
    (in_a_line,) = DeepSrlReader().read(written(tmp_path, "1 10\u00a0000 fell ||| B-A1 B-V\n"))
    columns = "10\u00a0000 * - (A1*)\nfell * fall (V*)\n"
    (in_columns,) = Conll2005Reader(target_column=2).read(written(tmp_path, columns))

    expected = SrlExample(("10\u00a0000", "fell"), (Proposition(1, ("B-A1", "B-V")),))
    assert (in_a_line, in_columns) == (expected, replace(expected, targets=("-", "fall")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("My cats", "file:1: expected the position of a predicate, the words, '|||' and the tags"),
        ("0 ||| O", "file:1: expected the position of a predicate, the words, '|||' and the tags"),
        ("0 Run ! ||| B-V", "file:1: 2 words with 1 tag: '0 Run ! ||| B-V'"),
        ("2 Run ! ||| B-V O", "file:1: predicate 2 is out of range for 2 words"),
        ("0 Run ! ||| V O", "file:1: 'V' is not a span tag"),
        ("0 Run ! ||| U-V O", "file:1: 'U-V' is not a tag of the scheme BIO: '0 Run ! ||| U-V O'"),
        ("-1 Run ! ||| B-A0 O", "file:1: the position -1 means no predicate, but there are arg"),
        ("\n", "file: this file has no examples"),
    ],
)
def test_malformed_lines_of_deep_srl_are_refused(tmp_path, line, message):
    with pytest.raises(DataError) as raised:
        list(DeepSrlReader().read(written(tmp_path, line)))

    assert message in str(raised.value)
