"""Word vectors as text: a word and its numbers a line, as GloVe and word2vec write them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from elmo_framework.common.errors import DataError
from elmo_framework.data.paths import read_lines


def read_vectors(
    path: Path, *, dim: int, wanted: Collection[str]
) -> dict[str, Float32[np.ndarray, " dim"]]:
    """Read the vectors of some words; the first vector of a word counts.

    Words may hold spaces, as some of GloVe's do. A first line of one or two whole numbers, as
    word2vec writes, is passed over.

    Raises:
        DataError: the vectors have another width, a line of a wanted word cannot be read, or
            the file has none of the words.
    """
    # What stands before the first space tells cheaply that a line is not wanted.
    beginnings = {word.partition(" ")[0] for word in wanted}
    found: dict[str, Float32[np.ndarray, " dim"]] = {}
    for number, line in _vector_lines(path, dim):
        if line.partition(" ")[0] not in beginnings:
            continue
        word, *values = line.rstrip(" ").rsplit(" ", dim)
        if word in wanted and word not in found:
            found[word] = _vector(values, dim, path, number)
    if not found:
        message = f"none of the {len(wanted)} words of the training data has a vector in this file"
        raise DataError(message, path=path)
    return found


def _vector_lines(path: Path, dim: int) -> Iterator[tuple[int, str]]:
    """Yield the lines after the header, if the first of them holds `dim` numbers."""
    lines = read_lines(path)
    opening = list(islice(lines, 2))
    if opening and _is_header(opening[0][1]):
        del opening[0]
    for number, line in opening[:1]:
        width = len(line.split()) - 1
        if width != dim:
            message = f"the vectors are {width} wide, but embedding_dim is {dim}"
            raise DataError(message, path=path, line=number)
    return chain(opening, lines)


def _is_header(line: str) -> bool:
    fields = line.split()
    return len(fields) in (1, 2) and all(field.isdecimal() for field in fields)


def _vector(values: list[str], dim: int, path: Path, number: int) -> Float32[np.ndarray, " dim"]:
    try:
        vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"this is no vector: {error}", path=path, line=number) from error
    if len(vector) != dim:
        found = f"found {len(vector)} numbers, expected {dim}"
        raise DataError(found, path=path, line=number)
    return vector
