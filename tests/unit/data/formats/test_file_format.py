from pathlib import Path

import pytest

from elmo_framework.data.formats.file_format import (
    FileFormat,
    FileSample,
    formats_of_lines,
    look_like_sentences,
)

CONLLU = "# sent_id = 1\n1\tRain\train\tNOUN\tNN\t_\t0\troot\t_\t_\n"
CONLL2012 = "wb/a 0 0 Rain NN (TOP* - - - - * (0)\nwb/a 0 1 fell VB *) fall 01 1 - * -\n"


def formats(tmp_path: Path, name: str, content: str) -> set[str]:
    path = tmp_path / name
    path.write_text(content)
    return {each.name for each in FileSample.of(path).formats()}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "Rain fell.\n", {"TABLE"}),
        ("a.tsv", "Rain fell.\n", {"TABLE"}),
        ("a.tsv", "Rain\tO\nAnna\tB-PER\n", {"TABLE", "COLUMNS"}),
        ("a.tsv", CONLLU, {"CONLLU"}),
        ("a.jsonl", "Rain fell.\n", {"JSON_LINES"}),
        ("a.json", '{"data":\n []}\n', {"JSON"}),
        ("a.json", '{"data": []}\n', {"JSON", "JSON_LINES"}),
        ("a.json", '{"text": "a"}\n{"text": "b"}\n', {"JSON_LINES"}),
        ("a.conll", "Rain\nfell\n", {"COLUMNS", "CONLL2012"}),
        ("a.conll", CONLLU, {"CONLLU"}),
        ("a.gold_conll", CONLL2012, {"CONLL2012"}),
        ("a.v4_gold_conll", "", {"COLUMNS", "CONLL2012"}),
        ("a.conllu", "Rain fell.\n", {"CONLLU"}),
        ("a.txt", "text\tlabel\nRain fell.\tweather\n", {"TABLE"}),
        ("a.csv", "", {"TABLE"}),
        ("a.xml", "<s>Rain fell.</s>\n", {"XML"}),
    ],
)
def test_suffix_and_first_lines_show_the_format(tmp_path, name, content, expected):
    assert formats(tmp_path, name, content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("-DOCSTART- -X- O\n\nRain NN O\n", FileFormat.COLUMNS),
        ("Anna NNP I-NP B-PER\nleft VBD I-VP O\n\nRain NN I-NP O\n", FileFormat.COLUMNS),
        ("The DT\nrain NN\n. .\n", FileFormat.COLUMNS),
        ("Ann - (A0*)\nfed feed (V*)\n", FileFormat.COLUMNS),
        ("# global.columns = ID FORM\n1\tRain\n", FileFormat.CONLLU),
        (CONLLU, FileFormat.CONLLU),
        ("#begin document (a); part 000\n", FileFormat.CONLL2012),
        (CONLL2012, FileFormat.CONLL2012),
        ("(3 (2 Good) (2 fun))\n", FileFormat.TREES),
        ("1 Ann fed cats ||| B-A0 B-V B-A1\n", FileFormat.PROPOSITIONS),
        ('{"text": "a"}\n{"text": \n', FileFormat.JSON_LINES),
        ('{\n  "data": []\n}\n', FileFormat.JSON),
        ("\n<?xml version='1.0'?><a>\n", FileFormat.XML),
        ("<!DOCTYPE corpus>\n<corpus>\n", FileFormat.XML),
        ("<!-- ours -->\n<corpus>\n", FileFormat.XML),
        ('<corpus lang="en">\n<s>Rain fell.</s>\n', FileFormat.XML),
        ('<corpus lang="en"><s>Rain fell.</s>\n', FileFormat.XML),
    ],
)
def test_first_lines_alone_show_the_format(content, expected):
    assert formats_of_lines(content.split("\n")) == {expected}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n",
        "Rain fell .\nIt rained .\n",
        "Two words\nHi there\n",
        "A B\n",
        "Anna met NASA\nRain fell .\n",
        "(3) is a number (of three)\n",
        "one\ttab\n",
        "# a heading\ntext\n",
        "Rain\nfell\n",
        "YES OK\nno ok\n",
        "1 Ann fed cats\n",
        "<unk> fell .\n",
        "<unk> <unk> fell .\n",
        "<s> Rain fell . </s>\n",
        "<3\n",
    ],
)
def test_plain_text_has_no_format(content):
    assert formats_of_lines(content.split("\n")) == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The grass was white at dawn .\nIt was green by noon .\n", True),
        ("The grass was white at dawn .\n\nGreen .\n", False),  # one of two
        ("Oslo NNP I-NP B-LOC\nfell VBD B-VP\n\n", False),
        ("Oslo a b c d B-LOC\nfell a b c d O\n", False),  # six columns, as in other data
        ("The grass was white\tat dawn .\n", False),
        ("", False),
    ],
)
def test_long_lines_without_tags_look_like_sentences(text: str, expected: bool) -> None:
    assert look_like_sentences(text.splitlines()) is expected
