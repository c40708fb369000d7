from pathlib import Path

import pytest

from elmo_framework.errors import DataError
from elmo_framework.metrics.srl import Proposition
from elmo_framework.tasks.srl.conllu_plus import ConlluPlusSrlReader
from elmo_framework.tasks.srl.example import SrlExample

HEADER = "# global.columns = ID FORM UPOS UP:PRED UP:ARGHEADS UP:ARGSPANS\n"


def rows(*cells: str) -> str:
    return "".join(row.replace(" ", "\t").replace("~", " ") + "\n" for row in cells)


SENTENCE = rows(
    "1 Anna~B. PROPN _ _ _",
    "2-3 wanna _ _ _ _",
    "2 want VERB want.01 A0:1|A1:4 A0:1-1|A1:3-4",
    "3 to PART _ _ _",
    "4 go VERB go.01 A0:1 A0:1-1",
)


def read(tmp_path: Path, text: str) -> list[SrlExample]:
    file = tmp_path / "a.conllup"
    file.write_text(text)
    return list(ConlluPlusSrlReader().read(file))


def test_every_predicate_is_an_example_with_its_spans(tmp_path):
    words = ("Anna B.", "want", "to", "go")

    senses = ("_", "want.01", "_", "go.01")

    assert read(tmp_path, f"{HEADER}# sent_id = 1\n{SENTENCE}") == [
        SrlExample(words, (Proposition(1, ("B-A0", "B-V", "B-A1", "I-A1")),), targets=senses),
        SrlExample(words, (Proposition(3, ("B-A0", "O", "O", "B-V")),), targets=senses),
    ]


def test_a_sentence_without_predicates_is_all_outside(tmp_path):
    (example,) = read(tmp_path, HEADER + rows("1 Rain NOUN _ _ _"))

    assert example.propositions == (Proposition(None, ("O",)),)


def test_overlap_prefers_the_predicate_then_shorter_spans(tmp_path):
    words = [f"{place} w{place} X {{}}" for place in range(1, 7)]
    words[2] = words[2].format("see.01 _ A0:1-6|A1:5-5")
    (example,) = read(tmp_path, HEADER + rows(*(word.format("_ _ _") for word in words)))

    tags = ("B-A0", "I-A0", "B-V", "B-C-A0", "B-A1", "B-C-A0")
    assert example.propositions == (Proposition(2, tags),)


@pytest.mark.parametrize(
    ("predicate", "arguments", "tags"),
    [
        (3, "A1:1-1|C-A1:2-4", "B-A1 B-C-A1 B-V B-C-A1"),
        (2, "A0:1-1|V:2-3|A1:2-4", "B-A0 B-V I-V B-A1"),
        (4, "A0:1-1|V:2-2|C-V:4-4", "B-A0 B-V O B-C-V"),
        (3, "V:1-1", "B-V O B-V O"),
    ],
)
def test_continuations_and_multiword_verbs_are_read(tmp_path, predicate, arguments, tags):
    words = [f"{place} w{place} X _ _ _" for place in range(1, 5)]
    words[predicate - 1] = f"{predicate} see X see.01 _ {arguments}"

    (example,) = read(tmp_path, HEADER + rows(*words))

    assert example.propositions == (Proposition(predicate - 1, tuple(tags.split())),)


def test_the_older_name_of_the_column_is_accepted(tmp_path):
    assert len(read(tmp_path, HEADER.replace("PRED", "PREDS") + SENTENCE)) == 2


def test_sentence_of_empty_nodes_only_is_skipped(tmp_path):
    unwritten = rows("0.1 go VERB go.01 _ _")

    (example,) = read(tmp_path, f"{HEADER}{unwritten}\n{rows('1 Rain NOUN _ _ _')}")

    assert example.words == ("Rain",)


def test_id_column_may_be_in_any_position(tmp_path):
    header = "# global.columns = FORM ID UP:PRED UP:ARGSPANS\n"

    (example,) = read(tmp_path, header + rows("a-b 1-2 _ _", "a 1 _ _", "b 2 _ _"))

    assert example.words == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SENTENCE, ":1: expected '# global.columns = ...', found '1\\tAnna B."),
        (
            "# global.columns = ID UP:PRED\n",
            ":1: unknown column 'FORM'; choose from ID, UP:PRED.",
        ),
        (HEADER + rows("1 a"), ":2: found 2 columns, expected 6 with tabs between them: '1 a'"),
        (HEADER + rows("3a a X _ _ _"), ":2: '3a' is not a word number such as"),
        (HEADER + rows("1 a X _ _ _", " b X _ _ _"), ":3: '' is not a word number such"),
        (HEADER + rows("1 a", "2 b X _ _ _"), ":2: found 2 columns, expected 6"),
        (HEADER + rows("1 a X b.01 _ A0"), ":2: found 'A0', expected LABEL:FIRST-LAST with ids"),
        (HEADER + rows("1 a X b.01 _ A0:1-2"), ":2: found 'A0:1-2', expected LABEL:FIRST-LAST"),
        (HEADER + rows("1 a X _ _ A0:1-1"), ":2: found the arguments 'A0:1-1' without a predicate"),
        (HEADER + rows("1 a X _ _ _", "3 b X _ _ _"), ":3: found the word 3, expected 2"),
        (
            HEADER + rows("1 a X b.01 _ _", "2 c X _ _ _", "3 d X d.01 _ C-A1:1-3|A1:2-2"),
            ":4: two arguments 'C-A1' overlap in 'C-A1:1-3|A1:2-2'",
        ),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)

    assert message in str(raised.value)
