import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.concat import concatenate, joined_dim
from elmo_framework.embedders.token_embedder import TokenEmbedder

COUNTS = Vocabularies({"words": {"a": 2, "b": 1}})
WORDS = {"type": "embedding", "embedding_dim": 3}


def test_without_a_further_embedder_nothing_changes():
    vectors = torch.randn(1, 2, 4)

    assert concatenate(vectors, None, collate_text([["a", "b"]])) is vectors
    assert joined_dim(4, None) == 4


def test_its_vectors_stand_behind_the_others():
    embedder = parse(TokenEmbedder, WORDS, source="a").build(vocabularies=COUNTS)
    text = collate_text([["a", "b"]], embedder.indexers)
    vectors = torch.randn(1, 2, 4)

    found = concatenate(vectors, embedder, text)

    assert found.equal(torch.cat([vectors, embedder(text)], dim=2))
    assert joined_dim(4, embedder) == found.shape[2] == 7
