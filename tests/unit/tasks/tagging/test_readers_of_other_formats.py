import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.config.parse import parse
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import BuildError, DataError
from elmo_framework.tasks.tagging.task import TaggedSentence

components.load()
CONLLU = """\
# sent_id = 1
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
3\t10 000\t10000\tNUM\tCD\t_\t1\tobj\t_\t_

# sent_id = 2
1\tRain\train\tNOUN\tNN\t_\t0\troot\t_\t_
"""


def read(folder: Path, kind: str, text: str, **options: Any) -> list[TaggedSentence]:
    path = folder / "data.txt"
    path.write_text(text, encoding="utf-8")
    reader = parse(DatasetReader, {"type": kind, **options}, source="a.jsonnet").build()
    return list(reader.read(path))


def shown(examples: Iterable[TaggedSentence]) -> list[str]:
    return [
        " ".join(f"{word}/{tag}" for word, tag in zip(held.words, held.tags or (), strict=True))
        for held in examples
    ]


def message(folder: Path, kind: str, text: str, **options: Any) -> str:
    with pytest.raises(DataError) as raised:
        read(folder, kind, text, **options)
    return str(raised.value).removeprefix(f"{folder / 'data.txt'}:")


def test_sequence_tagging_reads_words_joined_to_tags(tmp_path):
    text = "The###DT rain###NN\tfell###VBD\n\n####sym###X\n"

    assert shown(read(tmp_path, "sequence_tagging", text)) == [
        "The/DT rain/NN fell/VBD",
        "####sym/X",
    ]


def test_only_space_or_tab_ends_a_tagged_word(tmp_path):
    text = " 10\N{NO-BREAK SPACE}000###CD  \tEuro###NN\t\n"

    (sentence,) = read(tmp_path, "sequence_tagging", text)

    assert sentence.words == ("10\N{NO-BREAK SPACE}000", "Euro")


def test_sequence_tagging_can_have_other_delimiters(tmp_path):
    options = {"word_tag_delimiter": "/", "token_delimiter": "\t"}

    found = read(tmp_path, "sequence_tagging", "New York/B-LOC\t1/2/O\n", **options)

    assert found == [TaggedSentence(("New York", "1/2"), ("B-LOC", "O"))]


@pytest.mark.parametrize("pair", ["rain", "###NN", "rain###"])
def test_invalid_word_tag_pair_is_reported(tmp_path, pair):
    assert message(tmp_path, "sequence_tagging", f"a###B\nThe###DT {pair}\n") == (
        f"2: found {pair!r}, expected a word, '###' and a tag"
    )


def test_conll2000_reads_chunks_and_parts_of_speech(tmp_path):
    text = "The DT B-NP\nrain NN I-NP\nfell VBD B-VP\n\nGo VB B-VP\n"

    assert shown(read(tmp_path, "conll2000", text)) == ["The/B-NP rain/I-NP fell/B-VP", "Go/B-VP"]
    assert shown(read(tmp_path, "conll2000", text, tag_label="pos", max_instances=1)) == [
        "The/DT rain/NN fell/VBD"
    ]
    assert shown(read(tmp_path, "conll2000", text, coding_scheme="BIOUL")) == [
        "The/B-NP rain/L-NP fell/U-VP",
        "Go/U-VP",
    ]


def test_conll2000_refuses_other_columns_and_tags(tmp_path):
    assert message(tmp_path, "conll2000", "The DT\n") == (
        "1: found 2 columns, expected 3 for tag_label 'chunk'"
    )
    assert message(tmp_path, "conll2000", "The DT B-NP\nrain NN NP\n").startswith(
        "2: 'NP' is not a span tag; allowed: O"
    )
    with pytest.raises(BuildError, match="coding_scheme is 'BIO', but parts of speech"):
        read(tmp_path, "conll2000", "", tag_label="pos", coding_scheme="BIO")


def test_universal_dependencies_give_the_syntactic_words(tmp_path):
    assert read(tmp_path, "universal_dependencies_pos", CONLLU) == [
        TaggedSentence(("Do", "n't", "10 000"), ("AUX", "PART", "NUM")),
        TaggedSentence(("Rain",), ("NOUN",)),
    ]


def test_universal_dependencies_have_tags_of_the_language(tmp_path):
    options = {"use_language_specific_pos": True, "max_instances": 1}

    assert shown(read(tmp_path, "universal_dependencies_pos", CONLLU, **options)) == [
        "Do/VB n't/RB 10 000/CD"
    ]


def test_universal_dependencies_need_ten_columns(tmp_path):
    assert message(tmp_path, "universal_dependencies_pos", "# x\n1\tRain\tNN\n") == (
        "2: found 3 columns, expected 10 with tabs between them: '1 Rain NN'"
    )
    assert message(tmp_path, "universal_dependencies_pos", f"1\tRain\n{CONLLU[13:]}").startswith(
        "1: found 2 columns, expected 10"
    )
    assert message(tmp_path, "universal_dependencies_pos", "# only a comment\n") == (
        " this file has no sentences"
    )


@pytest.mark.parametrize("number", ["", "x", "1-", "1.2.3", "\u00b2"])
def test_universal_dependencies_need_the_number_of_a_word(tmp_path, number):
    line = CONLLU.splitlines()[2].removeprefix("1")

    assert message(tmp_path, "universal_dependencies_pos", f"{number}{line}\n") == (
        f"1: {number!r} is not a word number such as 1, 1-2 or 1.1"
    )


def test_json_lines_hold_words_and_tags(tmp_path):
    lines = [
        {"tokens": ["Rain", "fell"], "tags": ["NN", "VBD"], "id": 3},
        {"tokens": [], "tags": []},
    ]
    text = "\n\n".join(map(json.dumps, lines))

    assert shown(read(tmp_path, "tagging_json", text)) == ["Rain/NN fell/VBD", ""]


def test_json_lines_with_other_keys_and_scheme(tmp_path):
    text = json.dumps({"w": ["New", "York"], "t": ["I-LOC", "I-LOC"]})

    options = {"tokens_key": "w", "tags_key": "t", "coding_scheme": "BIOUL"}

    assert shown(read(tmp_path, "tagging_json", text, **options)) == ["New/B-LOC York/L-LOC"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[1]", "expected a JSON object, not [1]"),
        ('{"tokens": [], "tag": []}', "missing key 'tags'; found: tag, tokens. Did you mean"),
        ('{"tokens": "Rain", "tags": []}', "'tokens' is 'Rain'; expected a list of strings"),
        ('{"tokens": [], "tags": [1]}', "'tags' is [1]; expected a list of strings"),
        ('{"tokens": ["a"], "tags": []}', "1 word with 0 tags"),
        ('{"tokens": ', "not a JSON object: "),
        (r'{"tokens": ["\ud83d"], "tags": ["O"]}', "'tokens' has the lone surrogate"),
    ],
)
def test_invalid_json_lines_are_reported(tmp_path, line, expected):
    assert message(tmp_path, "tagging_json", f"\n{line}\n").startswith(f"2: {expected}")


def test_table_has_one_word_per_row_and_tag_last(tmp_path):
    text = 'The\tx\tDT\n"\tx\tQ\n\n\nRain\tx\tNN\n'

    assert shown(read(tmp_path, "tagging_table", text)) == ['The/DT "/Q', "Rain/NN"]


def test_a_table_with_commas_may_quote_and_name_its_columns(tmp_path):
    text = 'n,Word,Tag\ns1,"1,000",CD\n,rains,NNS\ns2,"""",Q\n'
    options = {"separator": "comma", "word_column": "Word", "tag_column": "Tag"}

    assert shown(read(tmp_path, "tagging_table", text, **options, sentence_column="n")) == [
        "1,000/CD rains/NNS",
        '"/Q',
    ]
    assert len(read(tmp_path, "tagging_table", text, **options)) == 1


def test_csv_has_commas_and_quoted_line_breaks(tmp_path):
    (tmp_path / "a.csv").write_text('"New\nYork",LOC\n,\nrains,O\n')
    reader = parse(DatasetReader, "tagging_table", source="a.jsonnet").build()

    assert shown(reader.read(tmp_path)) == ["New\nYork/LOC", "rains/O"]


def test_table_with_one_long_sentence_gives_a_hint(tmp_path, caplog):
    text = "".join(f"1\tw{number}\tO\n" for number in range(1001))

    read(tmp_path, "tagging_table", text, word_column=1, sentence_column=0)
    read(tmp_path, "tagging_table", text.partition("\n")[2], word_column=1)
    assert not caplog.messages
    read(tmp_path, "tagging_table", text, word_column=1)

    hint = "end sentences with blank lines, or set sentence_column"
    assert caplog.messages == [f"{tmp_path / 'data.txt'}:1: a sentence of 1001 words; {hint}"]


@pytest.mark.parametrize("kind", ["sequence_tagging", "tagging_json"])
def test_empty_file_of_a_folder_is_reported(tmp_path, kind):
    (tmp_path / "b.txt").write_text("\n")
    (tmp_path / "c.txt").write_text("")
    reader = parse(DatasetReader, kind, source="a.jsonnet").build()

    with pytest.raises(DataError) as raised:
        list(reader.read(tmp_path))

    assert str(raised.value) == f"{tmp_path / 'b.txt'}: this file has no examples"


def test_a_table_can_repeat_the_number_of_the_sentence(tmp_path):
    text = "7\ta\tA\n7\tb\tB\n8\tc\tC\n\n8\td\tD\n"

    found = read(tmp_path, "tagging_table", text, word_column=1, sentence_column=0)

    assert shown(found) == ["a/A b/B", "c/C", "d/D"]


def test_spans_of_a_table_are_written_in_a_scheme(tmp_path):
    text = "New\tI-LOC\nYork\tI-LOC\n"

    found = read(tmp_path, "tagging_table", text, coding_scheme="BIO", max_instances=1)

    assert shown(found) == ["New/B-LOC York/I-LOC"]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a\tb\nc\n", {}, "2: found 1 column, expected 2 as on line 1: 'c'"),
        ("a\tb\n", {"tag_column": 2}, "1: unknown column 2; allowed: -2 to 1"),
        (
            "word\ttag\n",
            {"tag_column": "tags"},
            "1: unknown column 'tags'; choose from tag, wo",
        ),
        ("\n\n", {}, " this file has no sentences"),
        ("word\ttag\n", {"tag_column": "tag"}, " this file has no sentences"),
        ('a,"b\n', {"separator": "comma"}, "1: invalid row of a table: unexpected end of data"),
        ("a\tB-X\nb\tY\n", {"coding_scheme": "BIO"}, "2: 'Y' is not a span tag"),
        (
            "a NN\nb VB\n",
            {},
            "1: the word and the tag are both in column 0 of 1; is the separator right "
            "(conll2003 reads spaces)?",
        ),
        ("a\tb\n", {"word_column": 1}, "1: the word and the tag are both in column 1 of 2"),
        (
            "word\ttag\ttag\n",
            {"word_column": "word", "tag_column": "tag"},
            "1: more than one column is called 'tag'",
        ),
        ("a\tx\tA\nb\tx\t \n", {}, "2: a word or its tag is missing"),
        ("a\tx\tA\n\tx\tB\n", {}, "2: a word or its tag is missing"),
    ],
)
def test_unreadable_table_is_reported(tmp_path, text, options, expected):
    assert message(tmp_path, "tagging_table", text, **options).startswith(expected)


def test_spaces_around_cells_and_column_names_are_ignored(tmp_path):
    text = "n, word, tag\n1, rains, VBZ\n1 ,pours ,VBZ \n , New York, NNP\n"
    options = {"separator": "comma", "word_column": "word", "tag_column": "tag"}
    options["sentence_column"] = "n"

    found = read(tmp_path, "tagging_table", text, **options)
    reader = parse(DatasetReader, {"type": "tagging_table", **options}, source="a").build()
    (source,) = reader.read_inputs(tmp_path / "data.txt")

    assert shown(found) == ["rains/VBZ pours/VBZ New York/NNP"]
    assert source.example.words == found[0].words


@pytest.mark.parametrize(
    ("kind", "form", "line"),
    [
        ("tagging_table", "a\tB-X\nb\tM-X\nc\tE-X\n", 2),
        ("sequence_tagging", "a###B-X b###M-X c###E-X\n", 1),
        ("tagging_json", '{"tokens": ["a", "b", "c"], "tags": ["B-X", "M-X", "E-X"]}\n', 1),
        ("conll2003", "a B-X\nb M-X\nc E-X\n", 2),
    ],
)
def test_incomplete_span_is_refused(tmp_path, kind, form, line):
    assert message(tmp_path, kind, form) == (
        f"{line}: 'M-X' is not a span tag; allowed: O, or one of B, I, L, U, E and S with a "
        "hyphen and a label, as B-PER ('B-X' next to it is one)"
    )


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("tagging_table", "a\tS-X\nb\tB-X\nc\tE-X\n"),
        ("sequence_tagging", "a###S-X b###B-X c###E-X\n"),
        ("tagging_json", '{"tokens": ["a", "b", "c"], "tags": ["S-X", "B-X", "E-X"]}\n'),
        ("conll2003", "a S-X\nb B-X\nc E-X\n"),
    ],
)
def test_every_reader_supports_bioes(tmp_path, kind, form):
    assert shown(read(tmp_path, kind, form)) == ["a/S-X b/B-X c/E-X"]
    assert shown(read(tmp_path, kind, form, coding_scheme="BIOUL")) == ["a/U-X b/B-X c/L-X"]
    assert shown(read(tmp_path, kind, form, coding_scheme="BIO")) == ["a/B-X b/B-X c/I-X"]


def test_files_of_a_folder_are_read_in_order(tmp_path):
    (tmp_path / "b.txt").write_text("c###C\n")
    (tmp_path / "a.txt").write_text("a###A\n")
    reader = parse(DatasetReader, "sequence_tagging", source="a.jsonnet").build()

    assert shown(reader.read(tmp_path)) == ["a/A", "c/C"]
