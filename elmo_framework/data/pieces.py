"""Byte-level pieces of words (byte-pair encoding): training them, and words to their ids.

`tokenizers` of Hugging Face is imported here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_framework.data.text import SubwordIndexer
from elmo_framework.errors import DataError
from elmo_framework.io.extras import import_extra

EXTRA = ("tokenizers", "pieces")
"""The package, and the extra that installs it."""

PIECES_FILE = "pieces.json"
"""The pieces in the folder of a prepared corpus, and in that of a biLM."""

NUM_BYTES = 256
"""The smallest number of pieces: with all bytes, no word is unknown."""

_BOUNDARY_IDS = {BEGIN_SENTENCE: 1, END_SENTENCE: 2}
_NO_PIECES = 3
"""The id of a word that a tokenizer drops as a whole; 0 would be padding."""

_FIRST_PIECE = 4
_SHOWN_DIGITS = 16

_MAX_WORDS = 10_000_000
_WORDS_PER_TEXT = 1000


@final
@dataclass(frozen=True)
class PieceIndexer(SubwordIndexer):
    """Converts each word to the ids of its pieces, followed by padding.

    The first piece of a word begins with a space, as in running text, so a word has the same
    pieces wherever it is. Pieces of a word after the first `max_pieces` are cut off.

    Attributes:
        content: of the file of the tokenizer, as JSON.
        max_pieces: the length of a row.
    """

    content: str = field(repr=False)
    max_pieces: int

    @cached_property
    def key(self) -> str:
        digest = sha256(self.content.encode()).hexdigest()[:_SHOWN_DIGITS]
        return f"pieces:{digest}:max_pieces={self.max_pieces}"

    @cached_property
    def num_ids(self) -> int:
        """The number of ids, that of padding included."""
        pieces: dict[str, int] = self._tokenizer.get_vocab()
        return _FIRST_PIECE + max(pieces.values(), default=-1) + 1

    @property
    def num_pieces(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return "tokens pieces"."""
        rows = np.zeros((len(words), self.max_pieces), np.int64)
        # A lone surrogate is not text; the tokenizer would refuse it.
        texts = [f" {word}".encode("utf-8", "replace").decode() for word in words]
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        for row, word, pieces in zip(rows, words, encoded, strict=True):
            own = pieces.ids[: self.max_pieces]
            row[: len(own)] = np.add(own, _FIRST_PIECE)
            if word in _BOUNDARY_IDS or not own:
                row[:] = 0
                row[0] = _BOUNDARY_IDS.get(word, _NO_PIECES)
        return rows

    def boundaries(self, width: int) -> NDArray[np.int64]:
        rows = np.zeros((len(_BOUNDARY_IDS), width), np.int64)
        rows[:, 0] = [*_BOUNDARY_IDS.values()]
        return rows

    @cached_property
    def _tokenizer(self) -> Any:
        return import_extra(*EXTRA).Tokenizer.from_str(self.content)


def read_pieces(path: Path, *, max_pieces: int) -> PieceIndexer:
    """Read the file of a tokenizer, as `elmo prepare --pieces` writes it.

    Raises:
        DataError: it cannot be read.
        RunError: the extra `pieces` is not installed.
    """
    import_extra(*EXTRA)
    try:
        indexer = PieceIndexer(path.read_text(encoding="utf-8"), max_pieces)
        _ = indexer.num_ids
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"not a file of pieces: {error}", path=path) from error
    return indexer


def train_pieces(words: Sequence[str], counts: NDArray[np.int64], num_pieces: int) -> str:
    """Learn byte-level pieces (Sennrich et al. 2016, on bytes as in GPT-2).

    Words of more than ten million words of text count in proportion, so that time is bounded.

    Args:
        words: distinct ones.
        counts: how often each is in the text.
        num_pieces: the 256 bytes included; a small text can have fewer.

    Returns:
        The JSON of a tokenizer of Hugging Face; the same for the same words and counts.

    Raises:
        RunError: the extra `pieces` is not installed.
    """
    tokenizers = import_extra(*EXTRA)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=num_pieces, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    scale = min(1.0, _MAX_WORDS / max(1, int(counts.sum())))
    scaled = np.rint(counts * scale).astype(np.int64).tolist()
    tokenizer.train_from_iterator(_repeated(zip(words, scaled, strict=True)), trainer)
    written: str = tokenizer.to_str(pretty=True)
    return written


def _repeated(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield each word as often as it counts, several times in a text."""
    for word, count in counts:
        text = f" {word}".encode("utf-8", "replace").decode()
        for start in range(0, count, _WORDS_PER_TEXT):
            yield text * min(_WORDS_PER_TEXT, count - start)
