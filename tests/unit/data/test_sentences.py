from hashlib import blake2b

import pytest

from elmo_framework.data.sentences import chunks, longest_first, padded_batches, sentence_digest

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6]


def test_equal_lengths_keep_their_order() -> None:
    assert longest_first(range(8), LENGTHS) == [5, 7, 4, 2, 0, 6, 1, 3]
    assert longest_first([3, 1, 0], LENGTHS) == [0, 3, 1]
    assert longest_first([], LENGTHS) == []


def test_batches_count_padding() -> None:
    assert list(padded_batches(LENGTHS, int, max_tokens=8)) == [[3, 1], [4, 1], [5], [9], [2], [6]]
    assert list(padded_batches([1, 1, 1], int, max_tokens=9, batch_size=2)) == [[1, 1], [1]]


def test_chunks_count_items_alone() -> None:
    assert list(chunks(LENGTHS, int, max_size=8)) == [[3, 1, 4], [1, 5], [9], [2, 6]]
    assert list(chunks([], int, max_size=8)) == []


@pytest.mark.parametrize(
    ("separator", "num_bytes", "text"),
    [(None, 16, "1:a2:bc"), ("\n", 16, "a\nbc"), (" ", 8, "a bc")],
)
def test_digest_is_that_of_existing_files(separator, num_bytes, text) -> None:
    found = sentence_digest(["a", "bc"], separator=separator, num_bytes=num_bytes)
    assert found == blake2b(text.encode(), digest_size=num_bytes).digest()


def test_words_that_contain_the_separator_are_not_several_words() -> None:
    sentences = [["a\nb"], ["a", "b"], ["3:a\nb"], ["3:a", "b"], ["", "a", "b"], ["\na", "b"]]
    sentences += [[], [""], ["", ""], ["\n"]]
    digests = {sentence_digest(words, separator="\n") for words in sentences}
    assert len(digests) == len(sentences)


def test_digest_accepts_words_with_invalid_unicode() -> None:
    assert sentence_digest(["\ud800"]) != sentence_digest(["\ud801"])
