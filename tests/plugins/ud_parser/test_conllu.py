"""Reading and writing CoNLL-U."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import DataError
from tests.plugins.ud_parser.conftest import SENTENCES


def reader(**keys: Any) -> Any:
    from plugins.ud_parser.conllu import UniversalDependenciesReader

    return UniversalDependenciesReader(**keys)


def test_words_of_multiword_tokens_are_read() -> None:
    sentence = list(reader().read(SENTENCES))[1]
    assert sentence.words == ("Dogs", "do", "n't", "like", "cats", ".")
    assert sentence.parse.heads == (4, 4, 4, 0, 4, 4)
    assert sentence.multiword[0][0] == 2
    assert sentence.comments == ("# sent_id = 2", "# text = Dogs don't like cats.")
    assert sentence.misc[4] == "SpaceAfter=No"


def test_empty_nodes_are_not_words() -> None:
    sentence = list(reader().read(SENTENCES))[4]
    assert sentence.words == ("Ann", "reads", "books", "and", "Tom", "letters", ".")


def test_inputs_keep_the_columns_and_comments_of_the_file() -> None:
    inputs = list(reader().read_inputs(SENTENCES))
    assert inputs[1].example.parse is None
    assert inputs[1].fields["sent_id"] == "2"
    assert inputs[1].fields["upos"] == ["NOUN", "AUX", "PART", "VERB", "NOUN", "PUNCT"]


def test_inputs_need_no_tree(tmp_path: Path) -> None:
    file = tmp_path / "words.conllu"
    file.write_text("1\tGo\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    (only,) = reader().read_inputs(file)
    assert only.example.words == ("Go",)


def test_written_parses_are_the_file_without_empty_nodes() -> None:
    from plugins.ud_parser.conllu import conllu_lines

    sentences = list(reader().read(SENTENCES))
    written = "".join(conllu_lines((sentence.parse, sentence) for sentence in sentences))
    lines = SENTENCES.read_text().splitlines(keepends=True)
    assert written == "".join(line for line in lines if not line.startswith("5.1"))


def test_tabs_and_line_ends_in_words_are_written_as_spaces() -> None:
    from plugins.ud_parser.conllu import conllu_lines
    from plugins.ud_parser.sentence import Parse, UdSentence

    sentence = UdSentence(("New\tYork", "a\nb"), None)
    parse = Parse(("X", "X"), ("_", "_"), ("new\tyork", "a\r\nb"), (0, 1), ("root", "dep"))
    assert list(conllu_lines([(parse, sentence)])) == [
        "1\tNew York\tnew york\tX\t_\t_\t0\troot\t_\t_\n2\ta b\ta b\tX\t_\t_\t1\tdep\t_\t_\n\n"
    ]


@pytest.mark.parametrize(
    ("heads", "line", "message"),
    [
        (("0", "x"), 2, "HEAD is 'x'; expected the number of a word, from 0 to 2"),
        (("0", "3"), 2, "HEAD is '3'; expected the number of a word, from 0 to 2"),
        (("0", "-1"), 2, "HEAD is '-1'; expected"),
        (("_", "0"), 1, "HEAD is '_'; expected"),
        (("0", "0"), 2, "found 2 words with HEAD 0; a sentence has one root"),
        (("2", "1"), 1, "found 0 words with HEAD 0; a sentence has one root"),
        (("0", "2"), 2, "word 2 does not lead to the root: its heads form a cycle"),
    ],
)
def test_invalid_tree_is_an_error_with_its_line(
    tmp_path: Path, heads: tuple[str, str], line: int, message: str
) -> None:
    file = tmp_path / "bad.conllu"
    rows = [f"{n}\tw\tw\tX\t_\t_\t{head}\troot\t_\t_\n" for n, head in enumerate(heads, start=1)]
    file.write_text("".join(rows) + "\n")
    with pytest.raises(DataError) as caught:
        list(reader().read(file))
    assert str(caught.value).startswith(f"{file}:{line}: {message}")
