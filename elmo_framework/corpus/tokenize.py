"""Tokenize one block of text, with word ids local to the block."""

from __future__ import annotations

import io
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.config.parse import parse
from elmo_framework.config.plugins import load_plugins
from elmo_framework.corpus.blocks import Block
from elmo_framework.data.formats.text_files import decoded_lines
from elmo_framework.data.sentences import sentence_digest
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.io.files import replacing

_HASH_BYTES = 8


SplitLine: TypeAlias = Callable[[str], list[list[str]]]
"""Returns the words of each sentence of a line that has words."""


@final
@dataclass(frozen=True)
class TextTokenizer:
    """Picklable options of a tokenizer of lines; each process builds its own.

    Attributes:
        tokenizer: splits sentences into words; its name, or JSON as in a config.
        sentence_splitter: the tokenizer that splits lines into sentences.
        packages: plugins that register tokenizers.
    """

    tokenizer: Any
    sentence_splitter: Any
    packages: Sequence[str] = ()

    def build(self) -> SplitLine:
        """Build the tokenizer.

        Raises:
            ElmoFrameworkError: the tokenizer or a plugin is unknown.
        """
        load_plugins(list(self.packages), asked_by="--include-package")
        words = _built(self.tokenizer, "--tokenizer").words
        sentences = _built(self.sentence_splitter, "--sentence-splitter").sentences
        return lambda line: list(filter(None, map(words, sentences(line))))


@final
@dataclass(frozen=True)
class TokenizedBlock:
    """The sentences of a block.

    Attributes:
        words: the distinct words, in order of appearance.
        ids: the concatenated sentences, as indices into `words`.
        lengths: the number of words of each sentence.
        hashes: of each sentence.
        num_blank_lines: the number of lines without a word.
    """

    words: list[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    num_blank_lines: int

    @classmethod
    def of(cls, block: Block, tokenizer: SplitLine) -> TokenizedBlock:
        """Tokenize the lines of a block.

        Raises:
            DataError: a line is not UTF-8.
        """
        word_ids: defaultdict[str, int] = defaultdict(count().__next__)
        ids, lengths, hashes, num_blank_lines = array("i"), array("i"), bytearray(), 0
        for line in _lines(block):
            sentences = tokenizer(line)
            num_blank_lines += not sentences
            for words in sentences:
                ids.extend(map(word_ids.__getitem__, words))
                lengths.append(len(words))
                hashes += sentence_digest(words, separator=" ", num_bytes=_HASH_BYTES)
        return cls(
            list(word_ids),
            np.frombuffer(ids, np.int32),
            np.frombuffer(lengths, np.int32),
            np.frombuffer(hashes, "<u8"),
            num_blank_lines,
        )

    def select(self, is_inside: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ids of the words and the lengths of some of the sentences."""
        return self.ids[np.repeat(is_inside, self.lengths)], self.lengths[is_inside]

    def save(self, path: Path) -> None:
        """Write a file atomically."""
        with replacing(path) as aside, aside.open("wb") as file:
            np.savez(
                file,
                words=np.frombuffer("\n".join(self.words).encode(), np.uint8),
                ids=self.ids,
                lengths=self.lengths,
                hashes=self.hashes,
                num_blank_lines=self.num_blank_lines,
            )

    @classmethod
    def load(cls, path: Path) -> TokenizedBlock:
        """Read a file of `save`."""
        with np.load(path) as file:
            words = file["words"].tobytes().decode()
            return cls(
                words.split("\n") if words else [],
                file["ids"],
                file["lengths"],
                file["hashes"],
                int(file["num_blank_lines"]),
            )


def load_hashes(path: Path) -> NDArray[np.uint64]:
    """Read only the hashes of a file of `TokenizedBlock.save`."""
    with np.load(path) as file:
        hashes: NDArray[np.uint64] = file["hashes"]
    return hashes


def _built(raw: Any, source: str) -> Tokenizer:
    return parse(Tokenizer, raw, source=source).build()


def _lines(block: Block) -> Iterator[str]:
    for piece in block.pieces:
        numbered = decoded_lines(io.BytesIO(piece.content), piece.path, first=piece.first_line)
        yield from (line for _, line in numbered)
