"""Token encoders without convolutions: byte-level pieces, and plain bytes."""

from __future__ import annotations

from abc import ABC
from hashlib import sha256
from typing import Annotated, Literal, final

from annotated_types import Ge, Le
from jaxtyping import Float, Int
from torch import Tensor

from elmo_framework.bilm.token_encoder import EncoderFile, TokenEncoder, projection
from elmo_framework.config.types import MAX_WIDTH, Dim, NumLayersOrZero, ReferencedPath
from elmo_framework.data.characters import (
    IN_WORD_PADDING_ID,
    NUM_CHARACTERS,
    PADDING_ID,
    ElmoCharacterIndexer,
)
from elmo_framework.data.pieces import PIECES_FILE, read_pieces
from elmo_framework.data.text import SubwordIndexer
from elmo_framework.model.part import Reference
from elmo_framework.nn.highway import Highway
from elmo_framework.nn.subword_pooling import PoolingMode, SubwordPooling


class SubwordTokenEncoder(TokenEncoder, ABC):
    """Pools the vectors of the parts of a word; then highway layers and a projection.

    Args:
        indexer: of the parts.
        num_ids: of the parts.
        in_word_padding: an id that is read as padding, too.
    """

    def __init__(
        self,
        indexer: SubwordIndexer,
        num_ids: int,
        *,
        in_word_padding: int = PADDING_ID,
        embedding_dim: int,
        sub_token_mode: PoolingMode,
        cell_size: int | None,
        num_highway: int,
        projection_dim: int | None,
    ) -> None:
        super().__init__()
        if cell_size is not None and sub_token_mode != "gru":
            raise ValueError(f"cell_size has no effect with sub_token_mode {sub_token_mode!r}")
        self.indexer, self._in_word_padding = indexer, in_word_padding
        cell_size = cell_size or embedding_dim
        self.pooling = SubwordPooling(num_ids, embedding_dim, sub_token_mode, cell_size)
        self.highway = Highway(self.pooling.output_dim, num_highway)
        self.projection = projection(self.pooling.output_dim, projection_dim)
        self.output_dim = projection_dim or self.pooling.output_dim

    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        words = characters.flatten(0, -2)
        words = words.masked_fill(words == self._in_word_padding, PADDING_ID)
        vectors: Tensor = self.highway(self.pooling(words))
        if self.projection is not None:
            vectors = self.projection(vectors)
        return vectors.view(*characters.shape[:-1], self.output_dim)


@final
@TokenEncoder.register("pieces")
class PieceTokenEncoder(SubwordTokenEncoder):
    """Pools the vectors of the byte-level pieces of a word (Sennrich et al. 2016).

    Args:
        pieces_file: the pieces: `CORPUS/pieces.json` of `elmo prepare --pieces N`, or the
            `tokenizer.json` of another tokenizer of Hugging Face. The folder of the biLM gets a
            copy.
        embedding_dim: the width of the vector of a piece.
        sub_token_mode: how the vectors of the pieces become one: their `mean`, their `max`, that
            of the `first` or the `last` piece, or the last states of a `gru` in both directions.
            Of these, `mean` and `max` do not depend on the order of the pieces.
        cell_size: the width of the state of the `gru` in each direction; null for
            `embedding_dim`.
        num_highway: the number of highway layers.
        projection_dim: the width of a word's vector; with null it is that of the pooled vector.
        max_pieces_per_token: how many pieces of a word are read; the rest is cut off.
    """

    def __init__(
        self,
        *,
        pieces_file: ReferencedPath,
        embedding_dim: Dim = 512,
        sub_token_mode: PoolingMode = "mean",
        cell_size: Dim | None = None,
        num_highway: NumLayersOrZero = 0,
        projection_dim: Dim | None = None,
        max_pieces_per_token: Annotated[int, Ge(1), Le(MAX_WIDTH)] = 16,
    ) -> None:
        indexer = read_pieces(pieces_file, max_pieces=max_pieces_per_token)
        super().__init__(
            indexer,
            indexer.num_ids,
            embedding_dim=embedding_dim,
            sub_token_mode=sub_token_mode,
            cell_size=cell_size,
            num_highway=num_highway,
            projection_dim=projection_dim,
        )
        content = indexer.content.encode()
        self.files = (EncoderFile("pieces_file", PIECES_FILE, content),)
        self.reference = Reference(pieces_file.absolute(), sha256(content).hexdigest())


@final
@TokenEncoder.register("bytes")
class ByteTokenEncoder(SubwordTokenEncoder):
    """Pools the vectors of the UTF-8 bytes of a word, its two marks included (Ling et al. 2015).

    The ids are those of `char_cnn`, which a prepared corpus has already.

    Args:
        embedding_dim: the width of the vector of a byte.
        sub_token_mode: how the vectors of the bytes become one: the last states of a `gru` in both
            directions, or their `max` or `mean`, which do not depend on the order of the bytes.
        cell_size: the width of the state of the `gru` in each direction; null for
            `embedding_dim`.
        num_highway: the number of highway layers.
        projection_dim: the width of a word's vector; with null it is that of the pooled vector.
        max_characters_per_token: how many bytes of a word are read, its two marks included; the
            rest is cut off.
    """

    def __init__(
        self,
        *,
        embedding_dim: Dim = 64,
        sub_token_mode: Literal["gru", "max", "mean"] = "gru",
        cell_size: Dim | None = None,
        num_highway: NumLayersOrZero = 1,
        projection_dim: Dim | None = 512,
        max_characters_per_token: Annotated[int, Ge(3), Le(MAX_WIDTH)] = 50,
    ) -> None:
        super().__init__(
            ElmoCharacterIndexer(max_characters_per_token),
            NUM_CHARACTERS,
            in_word_padding=IN_WORD_PADDING_ID,
            embedding_dim=embedding_dim,
            sub_token_mode=sub_token_mode,
            cell_size=cell_size,
            num_highway=num_highway,
            projection_dim=projection_dim,
        )
