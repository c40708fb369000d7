import torch

from elmo_framework.common.build import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.placement import joined, joined_dim
from elmo_framework.embedders.token_embedder import TokenEmbedder

COUNTS = Vocabularies({"words": {"a": 2, "b": 1}})
WORDS = {"type": "embedding", "embedding_dim": 3}


def test_without_an_output_embedder_nothing_changes():
    encoded = torch.randn(1, 2, 4)

    assert joined(encoded, None, collate_text([["a", "b"]])) is encoded
    assert joined_dim(4, None) == 4


def test_its_vectors_stand_behind_those_of_the_encoder():
    output = parse(TokenEmbedder, WORDS, source="a").build(vocabularies=COUNTS)
    text = collate_text([["a", "b"]], output.indexers)
    encoded = torch.randn(1, 2, 4)

    found = joined(encoded, output, text)

    assert found.equal(torch.cat([encoded, output(text)], dim=2))
    assert joined_dim(4, output) == found.shape[2] == 7
