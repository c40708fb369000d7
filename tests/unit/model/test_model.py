from typing import Any

import pytest

from elmo_framework.config.parse import parse
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TextEmbedder, TokenEmbedder
from elmo_framework.model.model import Model, ModelOutput

COUNTS = Vocabularies({"words": {"a": 2, "b": 1}})
WORDS = {"type": "embedding", "embedding_dim": 3}


class TwoEmbedders(Model[Any]):
    """Has an embedder, and another one apart from it."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        tokens = {"token_embedders": {"tokens": WORDS}}
        self.embedder = parse(TextEmbedder, tokens, source="a").build(vocabularies=COUNTS)
        self.other = parse(TokenEmbedder, other, source="a").build(vocabularies=COUNTS)

    def forward(self, batch: Any) -> ModelOutput:
        return ModelOutput(loss=None)

    def sums(self, output: ModelOutput, batch: Any) -> dict[str, float]:
        return {}

    def scores(self, sums: Any) -> dict[str, float]:
        return {}


@pytest.mark.parametrize(("lowercase", "expected"), [(False, 1), (True, 2)])
def test_embedders_that_read_the_same_ids_share_an_indexer(lowercase: bool, expected: int) -> None:
    model = TwoEmbedders({**WORDS, "lowercase": lowercase})

    keys = [indexer.key for indexer in model.indexers]

    assert len(keys) == len(set(keys)) == expected
    assert keys[0] == model.embedder.indexers[0].key
    assert keys[-1] == model.other.indexers[0].key
