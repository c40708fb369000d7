"""Read word vectors: text of GloVe, fastText and word2vec, and binary files of word2vec."""

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
from elmo_framework.io.remote import archive_path

WordVectorFormat: TypeAlias = Literal["text", "word2vec_binary"]
Vectors: TypeAlias = dict[str, Float32[np.ndarray, " dim"]]

_CHUNK = 1 << 20
_LONGEST_WORD = 1 << 16
"""Bytes; a longer word shows that a file is not a binary file of word2vec."""


def read_vectors(
    path: Path,
    *,
    dim: int,
    wanted: Collection[str],
    max_unseen: int | None = 0,
    lowercase: bool = False,
    file_format: WordVectorFormat | None = None,
) -> Vectors:
    """Read the vectors of words; of several vectors of a word, the first one.

    Args:
        path: a file for `open_packed`.
        dim: of the vectors.
        wanted: the words.
        max_unseen: how many of the first other words to read as well; None for all. Unreadable
            ones are skipped.
        lowercase: whether to skip other words that are not in lower case.
        file_format: of the file; by default binary if its name ends in `.bin`, text otherwise.

    Raises:
        DataError: the vectors have another dimension, that of a wanted word cannot be read, or the
            file has none of the wanted words.
    """
    selection = _WordSelection(wanted, max_unseen, lowercase=lowercase)
    with open_packed(path) as (name, file):
        is_binary = file_format == "word2vec_binary" or (not file_format and name.endswith(".bin"))
        read = _read_binary if is_binary else _read_text
        read(file, dim, archive_path(path).file, selection)
    if wanted and not any(word in selection.vectors for word in wanted):
        words = plural(len(wanted), "word")
        message = f"none of the {words} of the training data has a vector in this file"
        raise DataError(message, path=path)
    return selection.vectors


class _WordSelection:
    """Selects the words of a file; see `read_vectors`."""

    def __init__(self, wanted: Collection[str], max_unseen: int | None, *, lowercase: bool) -> None:
        self.vectors: Vectors = {}
        self._wanted = {word.encode(errors="surrogatepass"): word for word in wanted}
        self._beginnings = {word.partition(b" ")[0] for word in self._wanted}
        self._num_free = sys.maxsize if max_unseen is None else max_unseen
        self._lowercase = lowercase

    def can_begin(self, line: bytes) -> bool:
        """Return quickly whether a line may be needed, by the text before the first space."""
        return self._num_free > 0 or line.partition(b" ")[0] in self._beginnings

    def lenient(self, encoded: bytes) -> AbstractContextManager[None]:
        """Ignore errors of the vector of a word that is not wanted."""
        return nullcontext() if encoded in self._wanted else suppress(DataError)

    def word(self, encoded: bytes) -> str | None:
        """Return the word if its vector is selected, or None."""
        word = self._wanted.get(encoded)
        if word is None and self._num_free > 0:
            with suppress(UnicodeDecodeError):
                word = encoded.decode()
            if self._lowercase and word is not None and word != word.lower():
                return None
        return None if word in self.vectors else word

    def keep(self, encoded: bytes, word: str, vector: Float32[np.ndarray, " dim"]) -> None:
        self.vectors[word] = vector
        self._num_free -= encoded not in self._wanted


def _read_text(file: BinaryIO, dim: int, path: Path, selection: _WordSelection) -> None:
    """Read one word and its numbers per line.

    Words may contain spaces, as some in GloVe do, so lines are split from the end. A header of one
    or two integers, as in word2vec and fastText, and a byte order mark are skipped.
    """
    for number, line in _vector_lines(file, dim, path):
        if not selection.can_begin(line):
            continue
        encoded, *values = line.rsplit(None, dim) or (b"",)
        word = selection.word(encoded)
        if word is None:
            continue
        numbers = [value.decode(errors="replace") for value in values]
        with selection.lenient(encoded):
            selection.keep(encoded, word, parse_vector(numbers, dim, path, number))


def _vector_lines(file: BinaryIO, dim: int, path: Path) -> Iterator[tuple[int, bytes]]:
    """Return the lines after the header, after checking that the first has `dim` numbers."""
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
            return ((at, text.replace(b"\t", b" ")) for at, text in chain(opening, lines))
    return chain(opening, lines)


def _require_width(
    width: int, dim: int, path: Path, line: int | None = None, *, is_binary: bool = False
) -> None:
    if width == dim:
        return
    message = f"the vectors have dimension {width}, but embedding_dim is {dim}"
    if is_binary:
        message = "not a text file; for word2vec, set pretrained_format: 'word2vec_binary'"
    raise DataError(message, path=path, line=line)


def _is_header(line: bytes) -> bool:
    fields = line.split()
    return len(fields) in (1, 2) and all(field.isdigit() for field in fields)


def _num_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line, without the first field."""
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
    """Parse the numbers of a vector.

    Raises:
        DataError: one is not a finite number, or there are not `dim` of them.
    """
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"not a vector: {error}", path=path, line=line) from error
    if len(vector) != dim:
        message = f"found {plural(len(vector), 'number')}, expected {dim}"
        raise DataError(message, path=path, line=line)
    _require_finite(vector, "this vector", path, line)
    return vector


def _require_finite(
    vector: Float32[np.ndarray, " dim"], name: str, path: Path, line: int | None = None
) -> None:
    if not np.isfinite(vector).all():
        raise DataError(f"a number of {name} is not finite", path=path, line=line)


def _read_binary(file: BinaryIO, dim: int, path: Path, selection: _WordSelection) -> None:
    """Read a header and then, for each word: the word, a space, and 4 bytes per number.

    The original program writes a line feed after each vector, which is not part of the next word;
    the published GoogleNews file has none.
    """
    num_words, width = _binary_header(file, path)
    _require_width(width, dim, path)
    for encoded, values in _records(file, num_words, 4 * dim, path):
        word = selection.word(encoded)
        if word is not None:
            vector = np.frombuffer(values, dtype="<f4").astype(np.float32)
            with selection.lenient(encoded):
                _require_finite(vector, f"the vector of {word!r}", path)
                selection.keep(encoded, word, vector)


def _binary_header(file: BinaryIO, path: Path) -> tuple[int, int]:
    line = file.readline(_LONGEST_WORD)
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        message = f"found {line[:40]!r}, expected the number of words and the dimension"
        raise DataError(message, path=path, line=1)
    return int(fields[0]), int(fields[1])


def _records(
    file: BinaryIO, num_words: int, num_bytes: int, path: Path
) -> Iterator[tuple[bytes, bytes]]:
    """Yield each word with the bytes of its vector, reading the file in chunks."""
    buffer, start = b"", 0
    for number in range(num_words):
        end = buffer.find(b" ", start)
        while end < 0 or end + 1 + num_bytes > len(buffer):
            more = file.read(_CHUNK)
            if not more or (end < 0 and len(buffer) - start > _LONGEST_WORD):
                message = (
                    f"the file ends or is broken after {number} of {plural(num_words, 'word')}"
                )
                raise DataError(message, path=path)
            buffer, start = buffer[start:] + more, 0
            end = buffer.find(b" ")
        yield buffer[start:end].lstrip(b"\n"), buffer[end + 1 : end + 1 + num_bytes]
        start = end + 1 + num_bytes
