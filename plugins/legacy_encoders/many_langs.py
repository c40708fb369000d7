"""The token encoder of ELMoForManyLangs: words and characters of its dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, final

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.bilm import TokenEncoder
from elmo_framework.config import CountOrZero, Dim, NumLayersOrZero, Width
from elmo_framework.data import ElmoCharacterIndexer
from elmo_framework.nn import CharCnn, Highway, Linear

BEGIN_SENTENCE, END_SENTENCE, UNKNOWN, PADDING = "<bos>", "<eos>", "<oov>", "<pad>"

BEFORE_WORD, AFTER_WORD = "<eow>", "<bow>"
"""The marks of a word. Their names say the opposite, but all models were trained like this."""

WORD_ITEMS = (UNKNOWN, PADDING)
CHARACTER_ITEMS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN, PADDING, BEFORE_WORD, AFTER_WORD)
"""The items that a dictionary of words, or one of characters, must have."""

_NUM_MARKS = 2
_MOST_BYTES = 4
"""The length of the longest characters in UTF-8."""


@final
class Dictionary(nn.Module):
    """The ids of words or characters, saved with the weights.

    Args:
        items: in the order of their ids, without line feeds.

    Attributes:
        ids: of the items, from 0.
        spelling: the items in UTF-8, with line feeds between them.
    """

    spelling: UInt8[Tensor, " bytes"]

    def __init__(self, items: Iterable[str] = ()) -> None:
        super().__init__()
        spelling = "\n".join(items)
        encoded = np.frombuffer(spelling.encode(), np.uint8).copy()
        self.register_buffer("spelling", torch.from_numpy(encoded))
        self.ids = _ids(spelling)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *arguments: Any
    ) -> None:
        """Take over as many items as were saved."""
        spelling = state_dict.get(f"{prefix}spelling")
        if spelling is not None:
            self.spelling = self.spelling.new_zeros(len(spelling))
            self.ids = _ids(bytes(spelling.cpu().numpy()).decode())
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _ids(spelling: str) -> dict[str, int]:
    items = spelling.split("\n") if spelling else []
    return {item: number for number, item in enumerate(items)}


@final
@TokenEncoder.register("many_langs")
class ManyLangsTokenEncoder(TokenEncoder):
    """Word vectors and convolutions over characters, with one projection of both.

        x = W [e ; highway(f(max_t (W_k * E)_t + b_k))] + b

    e is the vector of the word, and E has those of its characters (Che et al. 2018). What is in no
    dictionary has the vector of `<oov>`. The dictionaries are in the file of the weights.

    Args:
        num_words: the number of word vectors.
        word_dim: the width of a word vector; 0 for no word vectors.
        num_characters: the number of character vectors; the last one is that of `<pad>`.
        character_dim: the width of a character vector; 0 for no convolutions.
        filters: `[width, number of filters]` of each convolution.
        num_highway: the number of highway layers.
        activation: f, applied after the maximum over a convolution's positions.
        max_characters_per_token: how many characters of a word are read, its two marks included.
        projection_dim: the width of x.
    """

    def __init__(
        self,
        *,
        num_words: CountOrZero,
        word_dim: CountOrZero,
        num_characters: CountOrZero,
        character_dim: CountOrZero,
        filters: list[tuple[Width, Dim]],
        num_highway: NumLayersOrZero,
        activation: Literal["relu", "tanh"],
        max_characters_per_token: Annotated[int, Ge(3), Le(1000)],
        projection_dim: Dim,
    ) -> None:
        super().__init__()
        if not word_dim and not character_dim:
            raise ValueError("word_dim and character_dim are 0; one must be larger")
        # A word arrives as bytes. As many as its characters can have are read.
        self._max_characters = max_characters_per_token - _NUM_MARKS
        self.indexer = ElmoCharacterIndexer(_NUM_MARKS + _MOST_BYTES * self._max_characters)
        self._begin, self._end = (int(row[1]) for row in self.indexer.ids(["<S>", "</S>"]))
        self.words, self.characters = Dictionary(), Dictionary()
        self.word_vectors: nn.Parameter | None = None
        self.char_cnn: CharCnn | None = None
        width = word_dim
        if word_dim:
            self.word_vectors = nn.Parameter(torch.empty(num_words, word_dim).uniform_(-1, 1))
        if character_dim:
            self.char_cnn = CharCnn(num_characters + 1, character_dim, filters, activation)
            self.highway = Highway(self.char_cnn.output_dim, num_highway)
            width += self.char_cnn.output_dim
        self.projection = Linear(width, projection_dim)
        self.output_dim = projection_dim

    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        words = [self._word(row) for row in characters.flatten(0, -2).tolist()]
        parts = []
        if self.word_vectors is not None:
            ids, unknown = self.words.ids, self.words.ids[UNKNOWN]
            rows = torch.tensor([ids.get(word, unknown) for word in words], dtype=torch.long)
            parts.append(functional.embedding(rows.to(characters.device), self.word_vectors))
        if self.char_cnn is not None:
            spelled = torch.from_numpy(self._character_ids(words)).to(characters.device)
            parts.append(self.highway(self.char_cnn(spelled)))
        vectors: Tensor = self.projection(torch.cat(parts, dim=1))
        return vectors.view(*characters.shape[:-1], self.output_dim)

    def _word(self, row: Sequence[int]) -> str:
        """Return the part of a word that is read, from the ids of `indexer`."""
        if self._begin in row:
            return BEGIN_SENTENCE
        if self._end in row:
            return END_SENTENCE
        spelling = bytes(each - 1 for each in row if 0 < each <= 256)
        # The last character may have been cut in two; it is beyond those that are read.
        return spelling.decode(errors="ignore")[: self._max_characters]

    def _character_ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "words characters", 1 above the ids of the dictionary: 0 is a vector of zeros."""
        ids, unknown = self.characters.ids, self.characters.ids[UNKNOWN]
        rows = np.full((len(words), self._max_characters + _NUM_MARKS), 1 + ids[PADDING])
        for row, word in zip(rows, words, strict=True):
            is_boundary = word in (BEGIN_SENTENCE, END_SENTENCE)
            inner = [ids[word]] if is_boundary else [ids.get(each, unknown) for each in word]
            row[: len(inner) + _NUM_MARKS] = [ids[BEFORE_WORD], *inner, ids[AFTER_WORD]]
            row[: len(inner) + _NUM_MARKS] += 1
        return rows
