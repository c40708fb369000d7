import pickle

import torch

from elmo_framework.data.bytes import ByteIndexer
from elmo_framework.data.text import collate_text


def test_a_word_is_its_bytes_between_two_marks():
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


def test_an_indexer_can_be_sent_to_another_process():
    indexer = ByteIndexer(7)

    assert pickle.loads(pickle.dumps(indexer)).key == indexer.key == "bytes:max_characters=7"
