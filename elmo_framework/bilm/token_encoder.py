"""The family of token encoders: one vector for each word, without context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import sqrt
from typing import Annotated, NamedTuple, TypeAlias, final

from annotated_types import Ge, Le, Len
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import MAX_LAYERS, MAX_WIDTH, Dim, NumLayersOrZero, Width
from elmo_framework.data.characters import NUM_CHARACTERS, ElmoCharacterIndexer
from elmo_framework.data.text import SubwordIndexer
from elmo_framework.model.part import Part
from elmo_framework.nn.char_cnn import CharCnn, CharCnnActivation
from elmo_framework.nn.highway import Highway, Linear

Filter: TypeAlias = tuple[Width, Dim]
"""The width of a convolution, in characters, and its number of filters."""

_PUBLISHED_FILTERS = [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)]


class EncoderFile(NamedTuple):
    """A file that a token encoder was read from, and that the folder of its biLM holds too.

    Attributes:
        key: the config key that names it.
        name: in the folder of the biLM.
        content: its bytes.
    """

    key: str
    name: str
    content: bytes


class TokenEncoder(Part, Registrable, ABC):
    """Encodes each word by itself: from its characters, its bytes or its pieces.

    Attributes:
        indexer: turns words into the ids that `forward` takes.
        output_dim: the width of a word's vector.
        files: that it was read from.
    """

    indexer: SubwordIndexer
    output_dim: int
    files: Sequence[EncoderFile] = ()

    @abstractmethod
    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        """Encode words; a word whose ids are all 0 is padding, and its vector is not read."""


@final
@TokenEncoder.register("char_cnn")
class CharCnnTokenEncoder(TokenEncoder):
    """Convolutions over characters, highway layers and a projection (section 3.1).

    The defaults are those of the published model.

    Args:
        embedding_dim: the width of a character's vector.
        filters: `[width, number of filters]` of each convolution.
        num_highway: the number of highway layers.
        projection_dim: the width of a word's vector; with null it is the number of all filters.
        activation: applied after the maximum over a convolution's positions.
        layer_norm: whether the word's vector is normalized at the end, as some of AllenNLP's
            language models do; the format of bilm-tf has no place for it.
        max_characters_per_token: how many characters of a word are read, its two marks included;
            the rest is cut off.
    """

    def __init__(
        self,
        *,
        embedding_dim: Dim = 16,
        filters: Annotated[list[Filter], Len(1, MAX_LAYERS)] = _PUBLISHED_FILTERS,
        num_highway: NumLayersOrZero = 2,
        projection_dim: Dim | None = 512,
        activation: CharCnnActivation = "relu",
        max_characters_per_token: Annotated[int, Ge(3), Le(MAX_WIDTH)] = 50,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        widest = max(width for width, _ in filters)
        if widest > max_characters_per_token:
            raise ValueError(
                f"filters holds a convolution {widest} characters wide, and "
                f"max_characters_per_token is {max_characters_per_token}; "
                f"allowed: widths up to {max_characters_per_token}"
            )
        self.indexer = ElmoCharacterIndexer(max_characters_per_token)
        self.char_cnn = CharCnn(NUM_CHARACTERS, embedding_dim, filters, activation)
        num_filters = self.char_cnn.output_dim
        self.highway = Highway(num_filters, num_highway)
        self.projection = projection(num_filters, projection_dim)
        self.output_dim = projection_dim or num_filters
        self.norm = nn.LayerNorm(self.output_dim) if layer_norm else None

    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        words = characters.flatten(0, -2)
        vectors: Tensor = self.highway(self.char_cnn(words))
        if self.projection is not None:
            vectors = self.projection(vectors)
        if self.norm is not None:
            vectors = self.norm(vectors)
        return vectors.view(*characters.shape[:-1], self.output_dim)


def projection(input_dim: int, output_dim: int | None) -> Linear | None:
    """Return the linear layer after the highway layers; None without an `output_dim`."""
    if output_dim is None:
        return None
    linear = Linear(input_dim, output_dim)
    nn.init.normal_(linear.weight, std=sqrt(1 / input_dim))
    nn.init.zeros_(linear.bias)
    return linear
