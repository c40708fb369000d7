from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import DataError
from elmo_framework.tasks.classification.sst_reader import Phrase, SstReader, read_tree
from elmo_framework.tasks.classification.task import ClassifiedText

TREE = "(3 (2 It) (4 (4 (2 's) (4 (3 good) (2 fun))) (2 .)))"


def texts(path: Path, *lines: str, **options: Any) -> list[tuple[str, str | None]]:
    path.write_text("".join(f"{line}\n" for line in lines))
    return [(" ".join(text.words), text.label) for text in SstReader(**options).read(path)]


def test_tree_has_words_and_phrases_from_the_root():
    tree = read_tree(TREE)

    assert tree.words == ("It", "'s", "good", "fun", ".")
    assert tree.phrases[:3] == (Phrase(3, 0, 5), Phrase(2, 0, 1), Phrase(4, 1, 5))
    assert len(tree.phrases) == 9


def test_brackets_and_slashes_are_unescaped():
    tree = read_tree(r"(2 (2 -LRB-) (2 (2 and\/or) (2 (2 2\*) (2 -RRB-))))")

    assert tree.words == ("(", "and/or", "2*", ")")


def test_only_a_space_ends_a_word():
    assert read_tree("(2 (2 8\N{NO-BREAK SPACE}1/2) (2 .))").words == (
        "8\N{NO-BREAK SPACE}1/2",
        ".",
    )


def test_only_sentences_are_read_by_default(tmp_path: Path):
    assert texts(tmp_path / "a", TREE, "", "(1 (2 Bad) (2 .))") == [
        ("It 's good fun .", "3"),
        ("Bad .", "1"),
    ]


def test_phrases_are_texts_as_well(tmp_path: Path):
    found = texts(tmp_path / "a", TREE, use_subtrees=True)

    assert found[:4] == [
        ("It 's good fun .", "3"),
        ("It", "2"),
        ("'s good fun .", "4"),
        ("'s good fun", "4"),
    ]
    assert len(found) == 9


def test_min_phrase_length_skips_phrases_only(tmp_path: Path):
    options = {"use_subtrees": True, "min_phrase_length": 4}

    assert texts(tmp_path / "a", TREE, "(1 (2 Bad) (2 .))", **options) == [
        ("It 's good fun .", "3"),
        ("'s good fun .", "4"),
        ("Bad .", "1"),
    ]


@pytest.mark.parametrize(
    ("granularity", "labels"),
    [
        ("5-class", ["0", "1", "2", "3", "4"]),
        ("3-class", ["0", "0", "1", "2", "2"]),
        ("2-class", ["0", "0", "1", "1"]),
    ],
)
def test_five_classes_become_three_or_two(tmp_path: Path, granularity: str, labels: list[str]):
    lines = [f"({sentiment} word)" for sentiment in range(5)]

    found = texts(tmp_path / "a", *lines, granularity=granularity)

    assert [label for _, label in found] == labels


def test_phrases_without_a_class_of_two_are_left_out(tmp_path: Path):
    found = texts(tmp_path / "a", TREE, granularity="2-class", use_subtrees=True)

    assert [text for text, _ in found] == [
        "It 's good fun .", "'s good fun .", "'s good fun", "good fun", "good"
    ]  # fmt: skip


def test_a_limit_counts_texts(tmp_path: Path):
    assert len(texts(tmp_path / "a", TREE, TREE, use_subtrees=True, max_instances=11)) == 11


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(3 (2 It) (4 fun)", "1 unclosed bracket"),
        ("(3 (2 It))) (2 x)", "something follows the tree: ') (2 x)'"),
        ("(3 a) (2 b)", "something follows the tree: '(2 b)'"),
        ("fun", "a tree begins with a bracket and a class, not with 'fun'"),
        (")", "a tree begins with a bracket and a class, not with ')'"),
        ("(5 fun)", "a bracket is not followed by a class from 0 to 4"),
        ("(fun)", "a bracket is not followed by a class from 0 to 4"),
        ("(3 (2 ))", "a phrase has no words"),
    ],
)
def test_malformed_line_is_reported_with_its_file(tmp_path: Path, line: str, message: str):
    with pytest.raises(DataError) as raised:
        texts(tmp_path / "a", TREE, line)

    assert str(raised.value) == f"{tmp_path / 'a'}:2: invalid tree: {message}: {line!r}"


def test_a_file_without_trees_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="this file has no examples"):
        texts(tmp_path / "a", "")


def test_an_example_is_words_and_a_label(tmp_path: Path):
    (tmp_path / "a").write_text("(2 (2 Fine) (2 .))\n")

    assert list(SstReader().read(tmp_path / "a")) == [ClassifiedText(("Fine", "."), "2")]
