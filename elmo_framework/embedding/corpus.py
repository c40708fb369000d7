"""The sentences of text files, one a line, and which of them are equal."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.data.formats.text_files import (
    STANDARD_INPUT,
    decoded_lines,
    error_context,
    read_lines,
    require_plain_text,
)
from elmo_framework.data.sentences import sentence_digest
from elmo_framework.data.tokenizer import Tokenizer
from elmo_framework.errors import DataError


@dataclass(frozen=True)
class Line:
    """A line of the input.

    Attributes:
        path: of its file.
        number: in its file, from 1.
        text: without spaces around it.
        tokens: the words of the text, where it is tokenized already.
        id: of the line, where the input has identifiers.
    """

    path: Path
    number: int
    text: str
    tokens: list[str] | None = None
    id: str | int | None = None

    def words(self, tokenizer: Tokenizer) -> list[str]:
        """Return the words of the line.

        Raises:
            DataError: the tokenizer fails; the error has the place of the line.
        """
        if self.tokens is not None:
            return self.tokens
        with error_context(self.path, self.number):
            return tokenizer.words(self.text)


@final
class SentenceFiles:
    """Lines of text files, read as often as is needed and never held.

    Args:
        sources: files, those that end with `.gz`, `.bz2`, `.xz` or `.zst` compressed; `-` is
            standard input; or lines that are in memory.
        tokenizer: splits a line into words.
        standard_input: its content, where it is among the paths; see `data.paths.spooled`.

    Raises:
        DataError: a file is a table.
    """

    def __init__(
        self,
        sources: Sequence[Path | Sequence[Line]],
        *,
        tokenizer: Tokenizer,
        standard_input: BinaryIO | None = None,
    ) -> None:
        require_plain_text(source for source in sources if isinstance(source, Path))
        self._sources, self._tokenizer = tuple(sources), tokenizer
        self._standard_input = standard_input

    def lines(self) -> Iterator[Line]:
        """Yield all lines in order, blank ones too.

        Raises:
            DataError: a file cannot be read, or is not UTF-8.
        """
        for source in self._sources:
            if isinstance(source, Path):
                for number, text in self._numbered(source):
                    yield Line(source, number, text.strip())
            else:
                yield from source

    def words(self, line: Line) -> list[str]:
        """Return the words of a line; raise the DataError of `Line.words`."""
        return line.words(self._tokenizer)

    def build_index(
        self, *, max_lines: int | None = None, by_document: bool = False
    ) -> CorpusIndex:
        """Read everything once and return what is to be known before vectors are computed.

        Args:
            max_lines: the largest number of lines.
            by_document: whether a blank line, or the end of a file, ends a document.

        Raises:
            DataError: see `lines`, or there are more than `max_lines`, or none.
        """
        lengths, digests, documents = array("i"), bytearray(), array("q")
        for line in self.lines():
            words = self.words(line)
            if by_document:
                is_new = not lengths or not lengths[-1] or line.number == 1
                documents.append(len(lengths) if is_new else documents[-1])
            lengths.append(len(words))
            digests += sentence_digest(words, separator="\n")
            if max_lines is not None and len(lengths) > max_lines:
                raise DataError(
                    f"this is line {max_lines + 1:,} of the input, and a file that keeps the "
                    f"sentences holds {max_lines:,}: pass --forget-sentences, or --format npy",
                    path=line.path,
                    line=line.number,
                )
        if not lengths:
            source = self._sources[0]
            raise DataError("no lines to embed", path=source if isinstance(source, Path) else None)
        index = _corpus_index(lengths, digests)
        return index.by_document(np.frombuffer(documents, np.int64)) if by_document else index

    def _numbered(self, source: Path) -> Iterator[tuple[int, str]]:
        if source == STANDARD_INPUT:
            assert self._standard_input is not None
            self._standard_input.seek(0)
            yield from decoded_lines(self._standard_input, source)
        else:
            yield from read_lines(source)


@dataclass(frozen=True)
class CorpusIndex:
    """An index of the lines of a corpus; a few bytes for each.

    Attributes:
        lengths: the number of words of each line.
        first: the first line with the same words, and so the same vectors.
        digest: of all words in their order.
        documents: the first line of the document of each line; None where lines are independent.
    """

    lengths: NDArray[np.int32]
    first: NDArray[np.int64]
    digest: str
    documents: NDArray[np.int64] | None = None

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The words of all different sentences before that of each line."""
        own = np.where(self.is_first, self.lengths, 0).cumsum(dtype=np.int64)
        own -= self.lengths
        return np.take(own, self.first)

    @cached_property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether no line before has the same vectors."""
        return np.equal(self.first, np.arange(len(self.first)))

    def by_document(self, documents: NDArray[np.int64]) -> CorpusIndex:
        """Return the same lines, of which no two have the same vectors."""
        first = np.arange(len(self.first))
        digest = blake2b(documents.tobytes() + self.digest.encode(), digest_size=16).hexdigest()
        return replace(self, first=first, digest=digest, documents=documents)

    def as_pooled(self) -> CorpusIndex:
        """Return the same lines with one word each, the blank ones too."""
        return replace(self, lengths=np.ones_like(self.lengths))

    @property
    def num_lines(self) -> int:
        """The number of lines, blank ones counted."""
        return len(self.lengths)

    @cached_property
    def num_words(self) -> int:
        """The number of words in different sentences."""
        return int(self.lengths[self.is_first].sum(dtype=np.int64))


def _corpus_index(lengths: array[int], digests: bytearray) -> CorpusIndex:
    first = _first_equal(np.frombuffer(digests, np.uint64).reshape(-1, 2))
    total = blake2b(digests, digest_size=16).hexdigest()
    return CorpusIndex(np.frombuffer(lengths, np.int32), first, total)


def _first_equal(digests: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the first line with the digest of each; few arrays of its length live at once."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: equal ones stay in their order
    is_new = np.zeros(len(order), dtype=bool)
    is_new[0] = True
    for column in digests.T:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    leaders = np.arange(len(order))
    leaders[~is_new] = 0
    np.maximum.accumulate(leaders, out=leaders)
    first = np.empty_like(order)
    first[order] = order[leaders]
    return first
