import torch

from elmo_framework.common.build import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.placement import joined, joined_dim, joined_indexers
from elmo_framework.embedders.text_embedder import TextEmbedder
from elmo_framework.embedders.token_embedder import TokenEmbedder

COUNTS = Vocabularies({"words": {"a": 2, "b": 1}})
WORDS = {"type": "embedding", "embedding_dim": 3}


def embedders(**changes):
    embedder = parse(TextEmbedder, {"token_embedders": {"tokens": WORDS}}, source="a")
    output = parse(TokenEmbedder, {**WORDS, **changes}, source="a")
    return embedder.build(vocabularies=COUNTS), output.build(vocabularies=COUNTS)


def test_without_an_output_embedder_nothing_changes():
    embedder, _ = embedders()
    encoded = torch.randn(1, 2, 4)

    assert joined(encoded, None, collate_text([["a", "b"]])) is encoded
    assert joined_dim(4, None) == 4
    assert joined_indexers(embedder, None) == embedder.indexers


def test_its_vectors_stand_behind_those_of_the_encoder():
    _, output = embedders()
    text = collate_text([["a", "b"]], output.indexers)
    encoded = torch.randn(1, 2, 4)

    found = joined(encoded, output, text)

    assert found.equal(torch.cat([encoded, output(text)], dim=2))
    assert joined_dim(4, output) == found.shape[2] == 7


def test_both_embedders_share_an_indexer_that_gives_the_same_ids():
    assert len(joined_indexers(*embedders())) == 1
    assert len(joined_indexers(*embedders(lowercase=True))) == 2
