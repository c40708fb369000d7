from collections import Counter

import pytest
import torch

import elmo_framework.embedders.embedding  # noqa: F401
from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import (
    TextEmbedder,
    TokenEmbedder,
    concatenate,
    joined_dim,
)
from elmo_framework.errors import BuildError

WORDS = Vocabularies({"words": Counter(["the", "dog"])})


def embedder(**dims: int) -> TextEmbedder:
    members = {name: {"type": "embedding", "embedding_dim": dim} for name, dim in dims.items()}
    lazy = parse(TextEmbedder, {"token_embedders": members}, source="a.jsonnet")
    return lazy.build(vocabularies=WORDS)


def test_vectors_are_in_alphabetical_order_of_names():
    built = embedder(tokens=2, elmo=3, more=1)
    text = collate_text([["the", "dog"], ["the"]], built.indexers)

    embedded = built(text)

    parts = [built.token_embedders[name](text) for name in ("elmo", "more", "tokens")]
    assert built.output_dim == 6
    assert torch.equal(embedded, torch.cat(parts, dim=2))
    assert not embedded[1, 1].any()


def test_an_indexer_that_two_embedders_share_is_run_once():
    assert len(embedder(one=2, two=3).indexers) == 1


def test_no_embedders_are_refused():
    with pytest.raises(BuildError) as raised:
        embedder()

    assert str(raised.value) == (
        "a.jsonnet: (top level): TextEmbedder: token_embedders is empty; name one at least"
    )


@pytest.mark.parametrize("name", ["", "a.b", "keys"])
def test_a_name_that_no_module_can_have_is_refused(name):
    with pytest.raises(BuildError, match=f"an embedder cannot be called '{name}'"):
        embedder(**{name: 2})


COUNTS = Vocabularies({"words": {"a": 2, "b": 1}})
OUTPUT_EMBEDDER = {"type": "embedding", "embedding_dim": 3}


def test_without_a_further_embedder_nothing_changes():
    vectors = torch.randn(1, 2, 4)

    assert concatenate(vectors, None, collate_text([["a", "b"]])) is vectors
    assert joined_dim(4, None) == 4


def test_vectors_of_a_further_embedder_follow_the_others():
    embedder = parse(TokenEmbedder, OUTPUT_EMBEDDER, source="a").build(vocabularies=COUNTS)
    text = collate_text([["a", "b"]], embedder.indexers)
    vectors = torch.randn(1, 2, 4)

    found = concatenate(vectors, embedder, text)

    assert found.equal(torch.cat([vectors, embedder(text)], dim=2))
    assert joined_dim(4, embedder) == found.shape[2] == 7
