"""Files of word vectors: GloVe's and fastText's text, word2vec's text and binary form."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import numpy as np
from jaxtyping import Float32

from elmo_framework.console import plural
from elmo_framework.data.formats.packed_files import open_packed
from elmo_framework.errors import DataError
from elmo_framework.io.files import archive_path

VectorFormat: TypeAlias = Literal["text", "word2vec_binary"]
Vectors: TypeAlias = dict[str, Float32[np.ndarray, " dim"]]

_CHUNK = 1 << 20
_LONGEST_WORD = 1 << 16
"""A word of more bytes than this shows that a binary file is not what it is taken for."""


def read_vectors(
    path: Path,
    *,
    dim: int,
    wanted: Collection[str],
    max_unseen: int | None = 0,
    lowercase: bool = False,
    file_format: VectorFormat | None = None,
) -> Vectors:
    """Read the vectors of some words; the first vector of a word counts.

    Args:
        path: a file, packed or not, as `open_packed` takes it.
        dim: the width of the vectors.
        wanted: the words.
        max_unseen: how many other words of the file are read as well, the first ones; None for
            all. Those that cannot be read are passed over.
        lowercase: whether other words are passed over that are not in lower case.
        file_format: of the file; None for binary if its name ends in `.bin`, and text otherwise.

    Raises:
        DataError: the vectors have another width, that of a wanted word cannot be read, or the
            file has none of the words.
    """
    choice = _Choice(wanted, max_unseen, lowercase=lowercase)
    with open_packed(path) as (name, file):
        chosen = file_format or ("word2vec_binary" if name.endswith(".bin") else "text")
        read = _read_text if chosen == "text" else _read_binary
        read(file, dim, archive_path(path).file, choice)
    found = choice.found
    if not any(word in found for word in wanted):
        words = plural(len(wanted), "word")
        message = f"none of the {words} of the training data has a vector in this file"
        raise DataError(message, path=path)
    return found


class _Choice:
    """Which words of a file are kept.

    Args:
        wanted: words.
        max_unseen: how many others; None for all.
        lowercase: whether only those in lower case can be others.

    Attributes:
        found: the vectors so far.
    """

    def __init__(self, wanted: Collection[str], max_unseen: int | None, *, lowercase: bool) -> None:
        self.found: Vectors = {}
        self._wanted = {word.encode(errors="surrogatepass"): word for word in wanted}
        self._beginnings = {word.partition(b" ")[0] for word in self._wanted}
        self._room = sys.maxsize if max_unseen is None else max_unseen
        self._lowercase = lowercase

    def can_begin(self, line: bytes) -> bool:
        """Tell cheaply, by what stands before the first space, whether a line may be needed."""
        return self._room > 0 or line.partition(b" ")[0] in self._beginnings

    def sparing(self, encoded: bytes) -> AbstractContextManager[None]:
        """Pass over what is wrong with the vector of a word, unless the word is wanted."""
        return nullcontext() if encoded in self._wanted else suppress(DataError)

    def word(self, encoded: bytes) -> str | None:
        """Return a word whose vector is to be kept; None for any that is not."""
        word = self._wanted.get(encoded)
        if word is None and self._room > 0:
            with suppress(UnicodeDecodeError):
                word = encoded.decode()
            if self._lowercase and word is not None and word != word.lower():
                return None
        return None if word in self.found else word

    def keep(self, encoded: bytes, word: str, vector: Float32[np.ndarray, " dim"]) -> None:
        """Keep the vector of a word."""
        self.found[word] = vector
        self._room -= encoded not in self._wanted


def _read_text(file: BinaryIO, dim: int, path: Path, choice: _Choice) -> None:
    """Read a word and its numbers a line.

    Words may hold spaces, as some of GloVe's do, so that lines are split from their end. A first
    line of one or two whole numbers, as word2vec and fastText write, is passed over, and so is a
    byte order mark.
    """
    for number, line in _vector_lines(file, dim, path):
        if not choice.can_begin(line):
            continue
        encoded, *values = line.rstrip(b" \r\n").rsplit(b" ", dim)
        word = choice.word(encoded)
        if word is None:
            continue
        numbers = [value.decode(errors="replace") for value in values]
        with choice.sparing(encoded):
            choice.keep(encoded, word, parse_vector(numbers, dim, path, number))


def _vector_lines(file: BinaryIO, dim: int, path: Path) -> Iterator[tuple[int, bytes]]:
    """Return the lines after the header, if the first of them holds `dim` numbers."""
    first = file.readline().removeprefix(codecs.BOM_UTF8)
    if not first:
        raise DataError("the file is empty", path=path)
    lines = enumerate(chain([first], file), start=1)
    opening = list(islice(lines, 2))
    if _is_header(first):
        del opening[0]
    for number, line in opening[:1]:
        _require_width(_num_numbers(line), dim, path, number, is_binary=b"\0" in line)
        if b"\t" in line:
            return ((at, held.replace(b"\t", b" ")) for at, held in chain(opening, lines))
    return chain(opening, lines)


def _require_width(
    width: int, dim: int, path: Path, line: int | None = None, *, is_binary: bool = False
) -> None:
    if width == dim:
        return
    message = f"the vectors are {width} wide, but embedding_dim is {dim}"
    if is_binary:
        message = "this is no text; a file of word2vec needs pretrained_format: 'word2vec_binary'"
    raise DataError(message, path=path, line=line)


def _is_header(line: bytes) -> bool:
    fields = line.split()
    return len(fields) in (1, 2) and all(field.isdigit() for field in fields)


def _num_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line, of which the first field is none."""
    count = 0
    for field in reversed(line.split()[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count


def parse_vector(
    values: Sequence[str], dim: int, path: Path, line: int
) -> Float32[np.ndarray, " dim"]:
    """Make a vector of the numbers in a line.

    Raises:
        DataError: one of them is none, or not finite, or they are more or fewer than `dim`.
    """
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"this is no vector: {error}", path=path, line=line) from error
    if len(vector) != dim:
        found = f"found {plural(len(vector), 'number')}, expected {dim}"
        raise DataError(found, path=path, line=line)
    _require_finite(vector, "this vector", path, line)
    return vector


def _require_finite(
    vector: Float32[np.ndarray, " dim"], name: str, path: Path, line: int | None = None
) -> None:
    if not np.isfinite(vector).all():
        raise DataError(f"a number of {name} is not finite", path=path, line=line)


def _read_binary(file: BinaryIO, dim: int, path: Path, choice: _Choice) -> None:
    """Read a header and then, for each word: the word, a space, and 4 bytes a number.

    The original program writes a line feed after each vector; the published GoogleNews file has
    none. It counts as no part of the word that follows.
    """
    num_words, width = _binary_header(file, path)
    _require_width(width, dim, path)
    for encoded, values in _records(file, num_words, 4 * dim, path):
        word = choice.word(encoded)
        if word is not None:
            vector = np.frombuffer(values, dtype="<f4").astype(np.float32)
            with choice.sparing(encoded):
                _require_finite(vector, f"the vector of {word!r}", path)
                choice.keep(encoded, word, vector)


def _binary_header(file: BinaryIO, path: Path) -> tuple[int, int]:
    line = file.readline(_LONGEST_WORD)
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        found = f"found {line[:40]!r}, expected the number of words and the width of the vectors"
        raise DataError(found, path=path, line=1)
    return int(fields[0]), int(fields[1])


def _records(
    file: BinaryIO, num_words: int, num_bytes: int, path: Path
) -> Iterator[tuple[bytes, bytes]]:
    """Yield each word with the bytes of its vector, reading large parts of the file at a time."""
    held, place = b"", 0
    for number in range(num_words):
        end = held.find(b" ", place)
        while end < 0 or end + 1 + num_bytes > len(held):
            more = file.read(_CHUNK)
            if not more or (end < 0 and len(held) - place > _LONGEST_WORD):
                message = (
                    f"the file ends or is broken after {number} of {plural(num_words, 'word')}"
                )
                raise DataError(message, path=path)
            held, place = held[place:] + more, 0
            end = held.find(b" ")
        yield held[place:end].lstrip(b"\n"), held[end + 1 : end + 1 + num_bytes]
        place = end + 1 + num_bytes
