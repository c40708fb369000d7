from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.console import plural
from elmo_framework.data.reader import DatasetReader
from elmo_framework.errors import BuildError, DataError
from elmo_framework.tasks.tagging.reader import Conll2003Reader
from elmo_framework.tasks.tagging.task import TaggedSentence

FIXTURES = Path(__file__).parents[3] / "fixtures" / "ner"


def reader(**options: object) -> Conll2003Reader:
    built = parse(DatasetReader, {"type": "conll2003", **options}, source="a.jsonnet").build()
    assert isinstance(built, Conll2003Reader)
    return built


def tags(examples: Iterator[TaggedSentence]) -> list[str]:
    return [" ".join(example.tags or ()) for example in examples]


def written(folder: Path, text: str, name: str = "data.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_sentences_of_a_file_are_read_in_order():
    first, *others = reader().read(FIXTURES / "train.txt")

    assert first.words == ("Maria", "Lund", "left", "Oslo", "on", "Monday", ".")
    assert first.tags == ("I-PER", "I-PER", "O", "I-LOC", "O", "O", "O")
    assert [len(example.words) for example in others] == [8, 7, 6, 3]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("ner", "I-PER I-PER O I-LOC O O O"),
        ("pos", "NNP NNP VBD NNP IN NNP ."),
        ("chunk", "I-NP I-NP I-VP I-NP I-PP I-NP O"),
    ],
)
def test_tag_label_selects_the_column(label, expected):
    assert tags(reader(tag_label=label).read(FIXTURES / "train.txt"))[0] == expected


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("BIOUL", "U-LOC U-LOC O U-LOC O O O"),
        ("BIO", "B-LOC B-LOC O B-LOC O O O"),
        ("IOB1", "I-LOC B-LOC O I-LOC O O O"),
        (None, "I-LOC B-LOC O I-LOC O O O"),
    ],
)
def test_tags_are_converted_to_the_configured_scheme(scheme, expected):
    assert tags(reader(coding_scheme=scheme).read(FIXTURES / "train.txt"))[2] == expected


def test_the_scheme_of_the_file_does_not_matter():
    examples = reader(coding_scheme="BIOUL").read(FIXTURES / "valid.txt")

    assert tags(examples) == ["B-PER L-PER O O U-LOC O", "B-ORG L-ORG O U-MISC O"]


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("Oslo\tB-LOC\n", "ner", "B-LOC"),
        ("Oslo NNP B-LOC\n", "ner", "B-LOC"),
        ("Oslo NNP\n", "pos", "NNP"),
        ("Oslo NNP B-NP\n", "chunk", "B-NP"),
    ],
)
def test_columns_may_be_missing(tmp_path, text, label, expected):
    assert tags(reader(tag_label=label).read(written(tmp_path, text))) == [expected]


@pytest.mark.parametrize(
    ("text", "label", "needed"),
    [("Oslo\n", "ner", 2), ("Oslo NNP\n", "chunk", 3), ("Oslo a b c O\n", "ner", 2)],
)
def test_a_file_of_another_number_of_columns_is_refused(tmp_path, text, label, needed):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        list(reader(tag_label=label).read(path))

    assert str(raised.value) == (
        f"{path}:1: found {plural(len(text.split()), 'column')}, "
        f"expected {needed} to 4 for tag_label {label!r}"
    )


@pytest.mark.parametrize("scheme", [None, "BIOUL"])
def test_an_impossible_tag_is_refused_with_its_line(tmp_path, scheme):
    path = written(tmp_path, "Rain O\n\nOslo B-LOC\nBergen X-\n")

    with pytest.raises(DataError) as raised:
        list(reader(coding_scheme=scheme).read(path))

    assert str(raised.value) == (
        f"{path}:4: 'X-' is not a span tag; "
        "allowed: O, or one of B, I, L, U, E and S with a hyphen and a label, as B-PER "
        "('B-LOC' next to it is one)"
    )


@pytest.mark.parametrize(
    ("name", "text", "end"),
    [
        (
            "a.txt",
            "The grass was white at dawn .\n",
            "The file looks like plain text, which 'conll2003' does not read",
        ),
        (
            "a.csv",
            "text,label\nRain,O\n",
            "The file looks like a table, which 'conll2003' does not "
            "read; of the readers of this task, these do: tagging_table",
        ),
        (
            "a.conllu",
            "# text = Rain fell again\n",
            "The file looks like CoNLL-U, which 'conll2003' "
            "does not read; of the readers of this task, these do: universal_dependencies_pos",
        ),
    ],
)
def test_an_error_about_data_in_another_format_says_what_it_looks_like(tmp_path, name, text, end):
    path = written(tmp_path, text, name)
    with pytest.raises(DataError) as raised:
        list(reader().read(path))
    assert str(raised.value).startswith(f"{path}:1: found ")
    assert str(raised.value).endswith(f". {end}")
    assert (raised.value.path, raised.value.line) == (path, 1)


def test_an_error_in_a_column_does_not_make_it_another_format(tmp_path):
    path = written(tmp_path, "Rain NN B-NP O\nfell VBD B-VP\n")
    with pytest.raises(DataError) as raised:
        list(reader().read(path))
    assert "looks like" not in str(raised.value)


def test_parts_of_speech_may_have_any_form(tmp_path):
    path = written(tmp_path, "( -LRB- O O\n$ X- O O\n")

    assert tags(reader(tag_label="pos").read(path)) == ["-LRB- X-"]


def test_parts_of_speech_have_no_coding_scheme():
    with pytest.raises(BuildError, match="coding_scheme is 'BIO', but parts of speech"):
        reader(tag_label="pos", coding_scheme="BIO")


def test_max_instances_limits_the_sentences():
    assert len(list(reader(max_instances=2).read(FIXTURES / "train.txt"))) == 2
    assert len(list(reader(max_instances=99).read(FIXTURES / "train.txt"))) == 5


def test_a_folder_is_read_file_by_file(tmp_path):
    written(tmp_path, "Oslo B-LOC\n", "b.txt")
    written(tmp_path, "Rain NN O\n", "a.txt")

    assert [example.words for example in reader().read(tmp_path)] == [("Rain",), ("Oslo",)]


def test_a_sentence_has_as_many_tags_as_words():
    with pytest.raises(ValueError, match="2 words with 1 tag"):
        TaggedSentence(("a", "b"), ("O",))
