from pathlib import Path

import pytest

from elmo_framework.data.formats.conll2012 import read_conll2012
from elmo_framework.errors import DataError

BEGIN = "#begin document (nw/a); part 001\n"
CAME = "nw/a 1 0 Ann NNP (S(NP*) - - - Ann (PERSON) (ARG0*) (3)\n"
LEFT = "nw/a 1 1 came VBD (VP*)) come 03 1 Ann * (V*) -\n"
RAIN = "nw/a\t1\t0\tRain\tNN\t(NP*)\t-\t-\t-\t-\t*\t(3|(4\n"
END = "#end document\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "a.gold_conll"
    file.write_text(text)
    return file


def test_the_columns_of_words_roles_and_mentions_are_read(tmp_path):
    (held,) = read_conll2012(written(tmp_path, f"{BEGIN}{CAME}{LEFT}\n{END}"))

    assert (held.document_id, held.part, held.first_line) == ("nw/a", "001", 2)
    assert held.words == ("Ann", "came")
    assert held.framesets == ("-", "03")
    assert held.speakers == ("Ann", "Ann")
    assert held.predicates == (("(ARG0*)", "(V*)"),)
    assert held.coreference == ("(3)", "-")


def test_sentences_have_as_many_predicates_as_columns(tmp_path):
    sentences = list(read_conll2012(written(tmp_path, f"{BEGIN}{CAME}{LEFT}\n\n{RAIN}{END}")))

    assert [len(held.predicates) for held in sentences] == [1, 0]
    assert [held.first_line for held in sentences] == [2, 6]
    assert sentences[1].coreference == ("(3|(4",)


def test_a_document_ends_a_sentence_and_names_those_that_follow(tmp_path):
    begin = ["#begin document (nw/b)\n", "#begin document (nw/c); part 0\n"]
    text = f"{BEGIN}{RAIN}{END}{begin[0]}{RAIN}{END}{begin[1]}{RAIN}"

    found = [(held.document_id, held.part) for held in read_conll2012(written(tmp_path, text))]

    assert found == [("nw/a", "001"), ("nw/b", None), ("nw/c", "0")]


def document_of(tmp_path: Path, text: str) -> list[tuple[int, str, str | None]]:
    """The number, the name and the part that each sentence of a file has."""
    sentences = read_conll2012(written(tmp_path, text))
    return [(held.document, held.document_id, held.part) for held in sentences]


def test_documents_of_one_name_are_as_many_as_begin(tmp_path):
    text = f"{BEGIN}{RAIN}\n{RAIN}{END}{BEGIN}{RAIN}{BEGIN.replace('#b', '# b')}{RAIN}"

    name = ("nw/a", "001")
    assert document_of(tmp_path, text) == [(0, *name), (0, *name), (1, *name), (2, *name)]


def test_second_column_separates_unnamed_parts(tmp_path):
    other = RAIN.replace("\t1\t", "\t2\t")
    text = f"#begin document (nw/a)\n{RAIN}\n{RAIN}\n{other}{END}{BEGIN}{RAIN}\n{other}"

    assert document_of(tmp_path, text) == [
        *[(0, "nw/a", None)] * 2,
        (1, "nw/a", "002"),
        *[(2, "nw/a", "001")] * 2,
    ]


@pytest.mark.parametrize("end", [END, END.replace("#", "# ")])
def test_words_behind_a_document_are_of_another(tmp_path, end):
    text = f"{BEGIN}{RAIN}{end}{RAIN}\n{RAIN.replace('nw/a', 'nw/b')}"

    assert document_of(tmp_path, text) == [
        (0, "nw/a", "001"),
        (1, "nw/a", "001"),
        (2, "nw/b", "001"),
    ]


def test_without_lines_around_documents_the_columns_name_them(tmp_path):
    (held,) = read_conll2012(written(tmp_path, RAIN))

    assert (held.document_id, held.part) == ("nw/a", "001")


def test_tabs_allow_empty_cells_and_spaces_in_words(tmp_path):
    first, second = (f"x 0 0 {word}{8 * ' _'} ".replace(" ", "\t") for word in ("10~000", "!"))
    text = f"{first}(1)\n{second}\n".replace("~", " ")

    (held,) = read_conll2012(written(tmp_path, text))

    assert held.words == ("10 000", "!")
    assert held.coreference == ("(1)", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEGIN + CAME + RAIN, ":3: found 12 columns, expected 13 as on line 2: 'nw/a"),
        ("a 0 0 Rain", ":1: found 4 columns, expected at least 12 with tabs or blanks between"),
        ("a 0 0 Rain\n" + RAIN, ":1: found 4 columns, expected at least 12"),
        (RAIN.replace("1", "one"), ":1: the second column is 'one', expected the number of a part"),
        (
            "#begin document nw/a\n" + RAIN,
            ":1: found '#begin document nw/a', expected '#begin document",
        ),
        (BEGIN + END, "a.gold_conll: this file has no sentences"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError) as raised:
        list(read_conll2012(written(tmp_path, text)))

    assert message in str(raised.value)
