"""Words and their pieces: tokenizing, windows over long sentences, pooling into words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

SubTokenMode: TypeAlias = Literal["first", "last", "mean", "avg"]
"""The vector of a word of several pieces; `avg` is AllenNLP's name of `mean`."""


class Pieces(NamedTuple):
    """The pieces of a sentence, without special tokens.

    Attributes:
        ids: of the pieces.
        word_ids: the word of each piece, ascending.
    """

    ids: list[int]
    word_ids: list[int]

    def counts(self, num_words: int) -> NDArray[np.int64]:
        """Return the number of pieces of each word; 0 for a word without pieces."""
        return np.bincount(np.asarray(self.word_ids, dtype=np.int64), minlength=num_words)


def tokenize(tokenizer: Any, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
    """Divide the words of sentences into pieces.

    A byte-level tokenizer, such as GPT-2's, reads a space before each word, the first included, so
    that a word has the same pieces at every position.

    Args:
        tokenizer: a fast one of Hugging Face.
        sentences: the words of each.
    """
    space = " " if _is_byte_level(tokenizer) else ""
    # A lone surrogate is not text; the tokenizer would refuse the whole batch.
    prepared = [
        [(space + word).encode("utf-8", "replace").decode() if word else "" for word in words]
        for words in sentences
    ]
    encoded = tokenizer(
        prepared,
        is_split_into_words=True,
        add_special_tokens=False,
        truncation=False,
        verbose=False,
    )
    ids = encoded["input_ids"]
    return [Pieces(ids[number], encoded.word_ids(number)) for number in range(len(prepared))]


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer adds before and after a sentence."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, is_special = encoded["input_ids"], encoded["special_tokens_mask"]
    inner = [position for position, special in enumerate(is_special) if not special] or [len(ids)]
    return ids[: inner[0]], ids[inner[-1] + 1 :]


def _is_byte_level(tokenizer: Any) -> bool:
    splitter = tokenizer.backend_tokenizer.pre_tokenizer
    return splitter is not None and b'"ByteLevel"' in splitter.__getstate__()


def pool_pieces(
    pieces: Float[Tensor, "layers pieces dim"],
    counts: Int[Tensor, " words"],
    mode: SubTokenMode,
) -> Float[Tensor, "layers words dim"]:
    """Return a vector for each word; zeros for a word without pieces.

    Sums are in the order of the pieces, so that they have the same bits on every run.

    Args:
        pieces: the vectors of the pieces of all words, one word after the other.
        counts: how many pieces each word has.
        mode: which piece a word takes, or the mean of them.
    """
    ends = counts.cumsum(0)
    starts = ends - counts
    filled = counts.nonzero().squeeze(1)
    words = pieces.new_zeros(pieces.shape[0], len(counts), pieces.shape[2])
    if mode == "last":
        return words.index_copy(1, filled, pieces.index_select(1, ends[filled] - 1))
    total = words.index_copy(1, filled, pieces.index_select(1, starts[filled]))
    if mode == "first":
        return total
    for number in range(1, int(counts.max()) if len(counts) else 0):
        longer = (counts > number).nonzero().squeeze(1)
        # Each word is there once: without two summands for one position, the order is fixed.
        total = total.index_add(1, longer, pieces.index_select(1, starts[longer] + number))
    return total / counts.clamp(min=1)[:, None]
