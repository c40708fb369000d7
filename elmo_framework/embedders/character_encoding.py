"""Token embedder that encodes the characters of each word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, final

import torch
from annotated_types import Ge, Le
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_framework.config.types import MAX_WIDTH, Dim, DropoutRate, Injected, Lazy
from elmo_framework.data.characters import NUM_BYTE_IDS, ByteIndexer, CharacterIndexer
from elmo_framework.data.text import TextBatch
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.encoders.pooler import Pooler

Characters: TypeAlias = Literal["bytes", "vocabulary"]


@dataclass(frozen=True)
class CharacterEmbeddingOptions:
    """The vectors of characters.

    Attributes:
        embedding_dim: their dimension.
    """

    embedding_dim: Dim


@final
@TokenEmbedder.register("character_encoding")
class CharacterEncodingTokenEmbedder(TokenEmbedder):
    """Pools the vectors of a word's characters.

    Args:
        embedding: the vectors of the characters.
        encoder: encodes them as one vector, such as `cnn`.
        vocabularies: counted in the training data.
        characters: what the characters are: the UTF-8 bytes of a word between two marks, or those
            counted in the training data, in which all others share one vector.
        dropout: dropout rate of the vector of each word.
        max_characters_per_token: how many characters of a word are read, with the marks of bytes.
    """

    def __init__(
        self,
        embedding: CharacterEmbeddingOptions,
        encoder: Lazy[Pooler],
        vocabularies: Injected[Vocabularies],
        characters: Characters = "bytes",
        dropout: DropoutRate = 0.0,
        max_characters_per_token: Annotated[int, Ge(3), Le(MAX_WIDTH)] = 50,
    ) -> None:
        super().__init__()
        self.indexer: ByteIndexer | CharacterIndexer = ByteIndexer(max_characters_per_token)
        num_ids = NUM_BYTE_IDS
        if characters == "vocabulary":
            vocabulary = vocabularies.characters()
            self.indexer = CharacterIndexer(vocabulary, max_characters_per_token)
            num_ids = len(vocabulary)
        self.indexers = [self.indexer]
        self.embedding = nn.Embedding(num_ids, embedding.embedding_dim, padding_idx=0)
        self.encoder = encoder.build(input_dim=embedding.embedding_dim)
        self.output_dim = self.encoder.output_dim
        self.dropout = dropout

    def forward(self, text: TextBatch) -> Float[Tensor, "batch tokens dim"]:
        ids = text.ids[self.indexer.key]  # batch tokens characters
        positions, numbers = _distinct(text)
        characters = ids.flatten(end_dim=1).index_select(0, positions)
        encoded = self.encoder(self.embedding(characters), characters > 0)
        embedded = F.embedding(numbers, encoded)
        return F.dropout(embedded, self.dropout, training=self.training) * text.mask[:, :, None]


def _distinct(text: TextBatch) -> tuple[Int[Tensor, " distinct"], Int[Tensor, "batch tokens"]]:
    """Return the first position of each distinct word, and the number of the word at each position.

    Positions are counted through the batch row by row; the number at padding is 0.
    """
    num_tokens, device = text.mask.shape[1], text.mask.device
    numbers_by_word: dict[str, int] = {}
    positions: list[int] = []
    numbers = []
    for row, words in enumerate(text.words):
        for token, word in enumerate(words):
            if word not in numbers_by_word:
                numbers_by_word[word] = len(positions)
                positions.append(row * num_tokens + token)
        numbers.append([numbers_by_word[word] for word in words] + [0] * (num_tokens - len(words)))
    # A batch without words gives its first padding, so that there is something to point to.
    return torch.tensor(positions or [0], device=device), torch.tensor(numbers, device=device)
