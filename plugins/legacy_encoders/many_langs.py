"""The token encoder of ELMoForManyLangs: words and characters of its dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, final

import numpy as np
import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework import DataError
from elmo_framework.bilm import EncoderFile, TokenEncoder
from elmo_framework.config import Dim, NumLayersOrZero, ReferencedPath, Width
from elmo_framework.data import SubwordIndexer
from elmo_framework.data.formats import read_lines
from elmo_framework.nn import CharCnn, Highway, Linear

BEGIN_SENTENCE, END_SENTENCE, UNKNOWN, PADDING = "<bos>", "<eos>", "<oov>", "<pad>"

BEFORE_WORD, AFTER_WORD = "<eow>", "<bow>"
"""The marks of a word. Their names say the opposite, but all models were trained like this."""

_WORD_ITEMS = (UNKNOWN,)
_CHARACTER_ITEMS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN, PADDING, BEFORE_WORD, AFTER_WORD)
"""The items that a dictionary must have."""

_NUM_MARKS = 2
_BOUNDARIES = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}
_IDEOGRAPHIC_SPACE = "\u3000"


def read_words(path: Path) -> list[str]:
    """Return the words of a dictionary in the order of their ids.

    Raises:
        DataError: a line is damaged, the ids are not those from 0, or an item is missing.
    """
    return _read_dictionary(path, _WORD_ITEMS)


def read_characters(path: Path) -> list[str]:
    """Return the characters of a dictionary in the order of their ids.

    Raises:
        DataError: see `read_words`.
    """
    return _read_dictionary(path, _CHARACTER_ITEMS)


def padding_last(characters: Sequence[str]) -> list[int]:
    """Return the ids of characters in the order of the vectors in `CharCnn`."""
    return sorted(range(len(characters)), key=lambda each: characters[each] == PADDING)


def _read_dictionary(path: Path, required: Sequence[str]) -> list[str]:
    ids: dict[str, int] = {}
    for number, line in read_lines(path):
        # An item that is white space is read as an ideographic space, as in their code.
        *item, written = line.strip().split("\t")
        if len(item) > 1 or not written.isdecimal():
            message = f"expected an item, a tab and its id, found {line!r}"
            raise DataError(message, path=path, line=number)
        ids["".join(item) or _IDEOGRAPHIC_SPACE] = int(written)
    if sorted(ids.values()) != list(range(len(ids))):
        raise DataError(f"the ids of the {len(ids)} items are not those from 0", path=path)
    if missing := [item for item in required if item not in ids]:
        raise DataError(f"no item {missing[0]}", path=path)
    return sorted(ids, key=ids.__getitem__)


@final
@dataclass(frozen=True)
class ManyLangsIndexer(SubwordIndexer):
    """Converts each word to its id and those of its characters.

    The first id of a row is that of the word, 1 above its row in the table. The others are those of
    a mark, of the characters, of a mark, and padding, which is the last one.

    Attributes:
        words: by their ids; None if they are not read.
        characters: by their ids, `<pad>` last; None if they are not read.
        max_characters: how many characters of a word are read, its two marks included.
        name: distinguishes its dictionaries.
    """

    words: dict[str, int] | None = field(repr=False)
    characters: dict[str, int] | None = field(repr=False)
    max_characters: int
    name: str

    @property
    def key(self) -> str:
        return f"many_langs:{self.name}:max_characters={self.max_characters}"

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens characters+1"; without characters, or without words, less."""
        read = [_BOUNDARIES.get(word, word[: self.max_characters - _NUM_MARKS]) for word in words]
        columns = []
        if self.words is not None:
            known, unknown = self.words, self.words[UNKNOWN]
            ids = [known.get(word, unknown) for word in read]
            columns.append(1 + np.array(ids, np.int64).reshape(-1, 1))
        if self.characters is not None:
            columns.append(1 + self._character_ids(read, self.characters))
        return np.concatenate(columns, axis=1)

    def boundaries(self, width: int) -> NDArray[np.int64]:
        return self.ids([*_BOUNDARIES])[:, :width]

    def _character_ids(self, words: Sequence[str], ids: dict[str, int]) -> NDArray[np.int64]:
        rows = np.full((len(words), self.max_characters), ids[PADDING], np.int64)
        for row, word in zip(rows, words, strict=True):
            is_boundary = word in (BEGIN_SENTENCE, END_SENTENCE)
            inner = [word] if is_boundary else word
            spelled = [ids.get(each, ids[UNKNOWN]) for each in inner]
            row[: len(spelled) + _NUM_MARKS] = [ids[BEFORE_WORD], *spelled, ids[AFTER_WORD]]
        return rows


@final
@TokenEncoder.register("many_langs")
class ManyLangsTokenEncoder(TokenEncoder):
    """Word vectors and convolutions over characters, with one projection of both.

        x = W [e ; highway(f(max_t (W_k * E)_t + b_k))] + b

    e is the vector of the word, and E has those of its characters (Che et al. 2018). What is in no
    dictionary has the vector of `<oov>`.

    Args:
        words_file: the dictionary of words, `word.dic`; null for no word vectors. The folder of the
            biLM gets a copy.
        characters_file: the dictionary of characters, `char.dic`; null for no convolutions.
        word_dim: the width of a word vector.
        character_dim: the width of a character vector.
        filters: `[width, number of filters]` of each convolution.
        num_highway: the number of highway layers.
        activation: f, applied after the maximum over a convolution's positions.
        max_characters_per_token: how many characters of a word are read, its two marks included.
        projection_dim: the width of x.
    """

    def __init__(
        self,
        *,
        words_file: ReferencedPath | None,
        characters_file: ReferencedPath | None,
        word_dim: Dim = 100,
        character_dim: Dim = 50,
        filters: list[tuple[Width, Dim]],
        num_highway: NumLayersOrZero = 2,
        activation: Literal["relu", "tanh"] = "relu",
        max_characters_per_token: Annotated[Width, Ge(3)] = 50,
        projection_dim: Dim = 512,
    ) -> None:
        super().__init__()
        self.word_vectors: nn.Parameter | None = None
        self.char_cnn: CharCnn | None = None
        words = characters = None
        width, self.files = 0, []
        if words_file is not None:
            words = {word: row for row, word in enumerate(read_words(words_file))}
            self.word_vectors = nn.Parameter(torch.empty(len(words), word_dim).uniform_(-1, 1))
            self.files.append(EncoderFile("words_file", "word.dic", words_file.read_bytes()))
            width += word_dim
        if characters_file is not None:
            items = read_characters(characters_file)
            characters = {items[each]: row for row, each in enumerate(padding_last(items))}
            self.char_cnn = CharCnn(len(items) + 1, character_dim, filters, activation)
            self.highway = Highway(self.char_cnn.output_dim, num_highway)
            content = characters_file.read_bytes()
            self.files.append(EncoderFile("characters_file", "char.dic", content))
            width += self.char_cnn.output_dim
        if not self.files:
            raise ValueError("words_file and characters_file are null; name one at least")
        name = sha256(b"\0".join(file.content for file in self.files)).hexdigest()[:16]
        self.indexer = ManyLangsIndexer(words, characters, max_characters_per_token, name)
        self.projection = Linear(width, projection_dim)
        self.output_dim = projection_dim

    def forward(
        self, characters: Int[Tensor, "... tokens characters"]
    ) -> Float[Tensor, "... tokens dim"]:
        ids, parts = characters.flatten(0, -2), []
        if self.word_vectors is not None:
            # Padding, whose vector is not read, has the first one.
            rows = (ids[:, 0] - 1).clamp(min=0)
            parts.append(functional.embedding(rows, self.word_vectors))
            ids = ids[:, 1:]
        if self.char_cnn is not None:
            parts.append(self.highway(self.char_cnn(ids)))
        vectors: Tensor = self.projection(torch.cat(parts, dim=1))
        return vectors.view(*characters.shape[:-1], self.output_dim)
