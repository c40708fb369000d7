from pathlib import Path

import pytest

from elmo_framework.common.errors import DataError
from elmo_framework.embedders.pretrained_vectors import read_vectors


def written(folder: Path, text: str) -> Path:
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, *wanted: str, dim: int = 2) -> dict[str, list[float]]:
    vectors = read_vectors(path, dim=dim, wanted=wanted)
    return {word: vector.tolist() for word, vector in vectors.items()}


def test_only_the_wanted_words_are_read(tmp_path):
    path = written(tmp_path, "the 1 -2\nof 3 4e-1 \n, 5 6\n")

    assert read(path, "the", ",", "absent") == {"the": [1.0, -2.0], ",": [5.0, 6.0]}


def test_a_header_is_passed_over(tmp_path):
    assert read(written(tmp_path, "2 2\nthe 1 2\nof 3 4\n"), "the", "2") == {"the": [1.0, 2.0]}


def test_a_number_may_be_a_word_after_the_first_line(tmp_path):
    assert read(written(tmp_path, "the 1\n7 8\n"), "7", dim=1) == {"7": [8.0]}


def test_words_with_spaces_do_not_disturb_the_others(tmp_path):
    path = written(tmp_path, "the 1 2\n. . 3 4\n. 5 6\n")

    assert read(path, ".") == {".": [5.0, 6.0]}
    assert read(path, ". .") == {". .": [3.0, 4.0]}


def test_the_first_vector_of_a_word_counts(tmp_path):
    assert read(written(tmp_path, "the 1 2\nthe 3 4\n"), "the") == {"the": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("the 1 2 3\n", 1, "the vectors are 3 wide, but embedding_dim is 2"),
        ("9 3\nthe 1 2 3\n", 2, "the vectors are 3 wide, but embedding_dim is 2"),
        ("a 1 2\nthe 1 2x\n", 2, "this is no vector: could not convert string to float: '2x'"),
        ("a 1 2\nthe 1\n", 2, "found 1 numbers, expected 2"),
    ],
)
def test_a_line_that_is_no_vector_of_the_width_is_refused(tmp_path, text, line, message):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        read(path, "the")

    assert str(raised.value) == f"{path}:{line}: {message}"


@pytest.mark.parametrize("text", ["", "7 2\n", "a 1 2\n"])
def test_a_file_without_any_of_the_words_is_refused(tmp_path, text):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        read(path, "the", "of")

    assert str(raised.value) == (
        f"{path}: none of the 2 words of the training data has a vector in this file"
    )
