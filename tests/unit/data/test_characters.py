import pickle

import numpy as np
import pytest
import torch

from elmo_framework.data.characters import (
    NUM_CHARACTERS,
    PADDING_ID,
    ByteIndexer,
    ElmoCharacterIndexer,
    character_row,
)
from elmo_framework.data.text import collate_text


def row(*inner: int, length: int = 50) -> list[int]:
    marked = [259, *inner, 260]
    return marked + [261] * (length - len(marked))


def test_a_word_is_its_bytes_between_two_marks() -> None:
    assert character_row("Cat").tolist() == row(68, 98, 117)


def test_case_and_utf8_bytes_are_preserved() -> None:
    assert character_row("é").tolist() == row(196, 170)


def test_an_empty_word_is_a_word() -> None:
    assert character_row("").tolist() == row()


@pytest.mark.parametrize(("word", "mark"), [("<S>", 257), ("</S>", 258)])
def test_a_boundary_is_one_special_character(word: str, mark: int) -> None:
    assert character_row(word).tolist() == row(mark)


def test_the_unknown_word_is_spelled_out() -> None:
    assert character_row("<UNK>").tolist() == row(*(ord(c) + 1 for c in "<UNK>"))


def test_a_long_word_keeps_48_bytes_and_its_end_mark() -> None:
    assert character_row("a" * 47 + "é").tolist() == row(*[98] * 47, 196)
    assert character_row("a" * 60).tolist() == row(*[98] * 48)


def test_lone_surrogates_vanish() -> None:
    assert character_row("a\ud800b").tolist() == character_row("ab").tolist()


def test_indexing_a_sentence_gives_a_row_a_word() -> None:
    ids = ElmoCharacterIndexer().ids(["the", "<S>", "the"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [character_row(word).tolist() for word in ("the", "<S>", "the")]


def test_a_sentence_without_words_has_no_rows() -> None:
    assert ElmoCharacterIndexer(9).ids([]).shape == (0, 9)


def test_padding_words_are_rows_of_zeros() -> None:
    indexer = ElmoCharacterIndexer(6)
    ids = collate_text([["a"], ["b", "c"], []], [indexer]).ids[indexer.key]
    assert ids[0].tolist() == [row(98, length=6), [0] * 6]
    assert ids[2].tolist() == [[0] * 6, [0] * 6]


def test_changing_returned_ids_does_not_affect_later_calls() -> None:
    character_row("again")[:] = 0
    ElmoCharacterIndexer().ids(["again"])[:] = 0
    assert character_row("again")[0] == 259


def test_key_depends_on_the_length() -> None:
    assert ElmoCharacterIndexer(50).key != ElmoCharacterIndexer(20).key
    assert ElmoCharacterIndexer(20).ids(["a"]).shape == (1, 20)


def test_an_indexer_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(ElmoCharacterIndexer(20))) == ElmoCharacterIndexer(20)


def test_row_too_short_for_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="max_characters is 2; allowed: 3 or more"):
        ElmoCharacterIndexer(2)


def test_as_many_characters_as_ids_with_that_of_padding() -> None:
    longest = "".join(map(chr, range(0x100)))
    ids = {PADDING_ID, *ElmoCharacterIndexer(600).ids([longest, "<S>", "</S>"]).flatten().tolist()}
    assert max(ids) == NUM_CHARACTERS - 1


def test_a_word_is_its_utf8_bytes_between_two_marks():
    assert ByteIndexer(50).ids(["aé", "b"]).tolist() == [
        [257, 98, 196, 170, 258],
        [257, 99, 258, 0, 0],
    ]


def test_a_long_word_loses_its_last_bytes_and_keeps_its_marks():
    assert ByteIndexer(4).ids(["abc"]).tolist() == [[257, 98, 99, 258]]


def test_a_word_without_bytes_is_its_marks():
    assert ByteIndexer(50).ids(["", "\ud800"]).tolist() == [[257, 258], [257, 258]]


def test_a_batch_is_as_wide_as_its_longest_word():
    indexer = ByteIndexer(50)

    ids = collate_text([["a"], ["abc", "de"], []], [indexer]).ids[indexer.key]

    assert ids.shape == (3, 2, 5)
    assert ids[0].tolist() == [[257, 98, 258, 0, 0], [0] * 5]
    assert torch.equal(ids[2], torch.zeros(2, 5, dtype=torch.long))


def test_a_byte_indexer_can_be_sent_to_another_process():
    indexer = ByteIndexer(7)

    assert pickle.loads(pickle.dumps(indexer)).key == indexer.key == "bytes:max_characters=7"
