import gzip
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework.data.formats.word_vector_files import read_vectors
from elmo_framework.errors import DataError


def written(folder: Path, text: str) -> Path:
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, *wanted: str, dim: int = 2, **options: Any) -> dict[str, list[float]]:
    vectors = read_vectors(path, dim=dim, wanted=wanted, **options)
    return {word: vector.tolist() for word, vector in vectors.items()}


def test_only_the_wanted_words_are_read(tmp_path):
    path = written(tmp_path, "the 1 -2\nof 3 4e-1 \n, 5 6\n")

    assert read(path, "the", ",", "absent") == {"the": [1.0, -2.0], ",": [5.0, 6.0]}


def test_numbers_may_be_aligned_with_several_spaces(tmp_path):
    path = written(tmp_path, "the   1  -2\n\n. .  3   4 \na\u00a0b  5 6\n")

    assert read(path, "the", ". .", "a\u00a0b", max_unseen=9) == {
        "the": [1.0, -2.0],
        ". .": [3.0, 4.0],
        "a\u00a0b": [5.0, 6.0],
    }


def test_header_is_skipped(tmp_path):
    assert read(written(tmp_path, "2 2\nthe 1 2\nof 3 4\n"), "the", "2") == {"the": [1.0, 2.0]}


def test_a_number_may_be_a_word_after_the_first_line(tmp_path):
    assert read(written(tmp_path, "the 1\n7 8\n"), "7", dim=1) == {"7": [8.0]}


def test_words_with_spaces_do_not_disturb_the_others(tmp_path):
    path = written(tmp_path, "the 1 2\n. . 3 4\n. 5 6\n")

    assert read(path, ".") == {".": [5.0, 6.0]}
    assert read(path, ". .") == {". .": [3.0, 4.0]}


def test_the_first_vector_of_a_word_counts(tmp_path):
    assert read(written(tmp_path, "the 1 2\nthe 3 4\n"), "the") == {"the": [1.0, 2.0]}


def test_the_first_of_the_other_words_are_read_too(tmp_path):
    path = written(tmp_path, "of 1 2\nbroken 1 x\nof 9 9\n, 3 4\nthe 5 6\nlast 7 8\n")

    assert read(path, "the", max_unseen=1) == {"of": [1.0, 2.0], "the": [5.0, 6.0]}
    assert [*read(path, "the", max_unseen=None)] == ["of", ",", "the", "last"]


def test_an_other_word_that_is_repeated_counts_once(tmp_path):
    path = written(tmp_path, "of 1 2\nof 9 9\n, 3 4\nthe 5 6\nlast 7 8\n")

    assert read(path, "the", max_unseen=2) == {"of": [1.0, 2.0], ",": [3.0, 4.0], "the": [5.0, 6.0]}


def test_other_words_can_be_those_in_lower_case_alone(tmp_path):
    path = written(tmp_path, "Of 1 2\nof 3 4\n, 5 6\nThe 7 8\nlast 9 9\n")

    assert [*read(path, "The", max_unseen=2, lowercase=True)] == ["of", ",", "The"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("the 1 2 3\n", 1, "the vectors have dimension 3, but embedding_dim is 2"),
        ("9 3\nthe 1 2 3\n", 2, "the vectors have dimension 3, but embedding_dim is 2"),
        ("a 1 2\nthe 1 2x\n", 2, "not a vector: could not convert string to float: '2x'"),
        ("a 1 2\nthe 1\n", 2, "found 1 number, expected 2"),
        ("a 1 2\nthe 1 nan\n", 2, "a number of this vector is not finite"),
        ("a 1 2\nthe 1e39 0\n", 2, "a number of this vector is not finite"),
    ],
)
def test_line_with_an_invalid_vector_is_refused(tmp_path, text, line, message):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        read(path, "the")

    assert str(raised.value) == f"{path}:{line}: {message}"


@pytest.mark.parametrize("text", ["", "\ufeff"])
def test_an_empty_file_is_called_so(tmp_path, text):
    with pytest.raises(DataError, match=r"vectors\.txt: the file is empty"):
        read(written(tmp_path, text), "the")


def test_unwanted_nonfinite_vectors_are_skipped(tmp_path):
    path = written(tmp_path, "a inf 2\nof 1 2\nthe 3 4\n")

    assert read(path, "the", max_unseen=None) == {"of": [1.0, 2.0], "the": [3.0, 4.0]}


@pytest.mark.parametrize("text", ["the\t1\t2\nof\t3\t4\n", "2 2\nthe\t1 2\nof\t3 4\n"])
def test_numbers_may_be_separated_by_tabs(tmp_path, text):
    assert read(written(tmp_path, text), "of", "the") == {"the": [1.0, 2.0], "of": [3.0, 4.0]}


@pytest.mark.parametrize("text", ["\ufeffthe 1 2\nof 3 4\n", "\ufeff2 2\nthe 1 2\nof 3 4\n"])
def test_a_byte_order_mark_is_part_of_no_word(tmp_path, text):
    assert read(written(tmp_path, text), "of", "the") == {"the": [1.0, 2.0], "of": [3.0, 4.0]}


@pytest.mark.parametrize("text", ["7 2\n", "a 1 2\n"])
def test_a_file_without_any_of_the_words_is_refused(tmp_path, text):
    path = written(tmp_path, text)

    with pytest.raises(DataError) as raised:
        read(path, "the", "of")

    assert str(raised.value) == (
        f"{path}: none of the 2 words of the training data has a vector in this file"
    )


def test_a_first_line_whose_word_has_spaces_has_its_width(tmp_path):
    assert read(written(tmp_path, ". . 3 4\nthe 1 2\n"), ". .") == {". .": [3.0, 4.0]}


def test_words_with_unusual_spaces_are_words(tmp_path):
    path = written(tmp_path, "a\u00a0b 1 2\n\u2003 3 4\n")

    assert read(path, "a\u00a0b", "\u2003") == {"a\u00a0b": [1.0, 2.0], "\u2003": [3.0, 4.0]}


def test_lines_of_other_words_need_not_be_utf_8(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"\xff\xfe 1 2\r\nthe 3 4\r\n")

    assert read(path, "the") == {"the": [3.0, 4.0]}


def test_vectors_of_fasttext_are_read(tmp_path):
    path = tmp_path / "wiki.vec"
    path.write_text("2 3\nthe 1 2 3 \nof 4 5 6 \n")

    assert read(path, "of", dim=3) == {"of": [4.0, 5.0, 6.0]}


def test_packed_vectors_are_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.writestr("glove.2d.txt", "the 1 2\n")
        archive.writestr("glove.3d.txt", "the 1 2 3\n")

    assert read(tmp_path / "(glove.zip)#glove.3d.txt", "the", dim=3) == {"the": [1.0, 2.0, 3.0]}


def binary(words: list[str], dim: int, *, end: bytes = b"") -> bytes:
    """What word2vec writes: number i of word j is j + i / 10."""
    records = (
        word.encode() + b" " + struct.pack(f"<{dim}f", *(j + i / 10 for i in range(dim))) + end
        for j, word in enumerate(words)
    )
    return f"{len(words)} {dim}\n".encode() + b"".join(records)


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_binary_form_of_word2vec_is_read(tmp_path, end, pack):
    path = tmp_path / ("GoogleNews.bin.gz" if pack is gzip.compress else "GoogleNews.bin")
    words = ["</s>", "New_York", "\u00e9t\u00e9", "the", "the"]
    path.write_bytes(pack(binary(words, 4, end=end)))

    found = read(path, "the", "\u00e9t\u00e9", "</s>", "absent", dim=4)

    assert list(found) == ["</s>", "\u00e9t\u00e9", "the"]
    np.testing.assert_array_equal(found["the"], np.float32([3, 3.1, 3.2, 3.3]))
    np.testing.assert_array_equal(found["\u00e9t\u00e9"], np.float32([2, 2.1, 2.2, 2.3]))


def test_first_unseen_words_of_a_binary_file_are_read(tmp_path):
    path = tmp_path / "v.bin"
    whole = binary(["Of", "of", "of", "b?d", "the", ",", "last"], 1)
    path.write_bytes(whole.replace(b"b?d", b"b\xffd"))

    assert read(path, "the", dim=1, max_unseen=3) == {"Of": [0], "of": [1], "the": [4], ",": [5]}
    assert [*read(path, "the", dim=1, max_unseen=1, lowercase=True)] == ["of", "the"]
    assert [*read(path, "the", dim=1, max_unseen=None)] == ["Of", "of", "the", ",", "last"]
    assert [*read(path, "the", dim=1)] == ["the"]


def test_binary_file_larger_than_the_buffer_is_read(tmp_path):
    path = tmp_path / "v.bin"
    words = [f"w{number}" for number in range(6000)]
    path.write_bytes(binary(words, 60))

    found = read(path, "w0", "w4321", "w5999", dim=60)

    assert [vector[0] for vector in found.values()] == [0.0, 4321.0, 5999.0]


def test_inner_name_of_an_archive_sets_the_format(tmp_path):
    with zipfile.ZipFile(tmp_path / "vectors.zip", "w") as archive:
        archive.writestr("GoogleNews.bin", binary(["the"], 1))

    assert read(tmp_path / "vectors.zip", "the", dim=1) == {"the": [0.0]}


def test_a_binary_file_that_is_taken_for_text_is_called_so(tmp_path):
    path = tmp_path / "vectors.dat"
    path.write_bytes(binary(["the"], 2))

    with pytest.raises(DataError, match="not a text file; for word2vec, set pretrained_form"):
        read(path, "the")


def test_wanted_nonfinite_binary_vector_is_refused(tmp_path):
    path = tmp_path / "v.bin"
    path.write_bytes(
        binary(["of", "the"], 1).replace(struct.pack("<f", 1), struct.pack("<f", 1e400))
    )

    assert read(path, "of", dim=1, max_unseen=None) == {"of": [0.0]}
    with pytest.raises(DataError, match=r"v\.bin: a number of the vector of 'the' is not finite"):
        read(path, "the", dim=1)


def test_a_format_can_be_stated(tmp_path):
    path = tmp_path / "vectors.dat"
    path.write_bytes(binary(["the"], 2))

    assert read(path, "the", file_format="word2vec_binary") == {"the": [0.0, np.float32(0.1)]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: found b'', expected the number of words and the dimension"),
        (b"the 1 2\n", ":1: found b'the 1 2\\n', expected the number of words and the dim"),
        (b"1 3\nthe xxxxyyyyzzzz", ": the vectors have dimension 3, but embedding_dim is 2"),
        (b"2 2\nthe xxxxyyyy", ": the file ends or is broken after 1 of 2 words"),
        (b"1 2\nthe xxxxyyy", ": the file ends or is broken after 0 of 1 word"),
        (b"1 2\nof xxxxyyyy", ": none of the 1 word of the training data has a vector in this"),
    ],
)
def test_a_broken_binary_file_is_refused(tmp_path, content, message):
    path = tmp_path / "v.bin"
    path.write_bytes(content)

    with pytest.raises(DataError) as raised:
        read(path, "the")

    assert str(raised.value).startswith(f"{path}{message}")
