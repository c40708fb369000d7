import torch

from elmo_framework.data.characters import ElmoCharacterIndexer
from elmo_framework.data.text import collate_text


def test_a_batch_without_sentences_has_no_rows():
    indexer = ElmoCharacterIndexer()

    batch = collate_text([], [indexer])

    assert batch.words == ()
    assert batch.mask.shape == (0, 1)
    assert batch.ids[indexer.key].shape == (0, 1, 50)
    assert batch.ids[indexer.key].dtype == torch.long
