"""Many sentences: batches of similar length, chunks of bounded size, and digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

ItemT = TypeVar("ItemT")


def longest_first(indices: ArrayLike, lengths: ArrayLike) -> list[int]:
    """Sort indices by descending length; those of equal length keep their order.

    Args:
        indices: of some items.
        lengths: of all items.
    """
    indices = np.asarray(indices, dtype=np.int64)
    order: list[int] = indices[np.argsort(-np.asarray(lengths)[indices], kind="stable")].tolist()
    return order


def padded_batches(
    items: Iterable[ItemT],
    length: Callable[[ItemT], int],
    *,
    max_tokens: float,
    batch_size: float = inf,
) -> Iterator[list[ItemT]]:
    """Divide items into batches, each as large as its bounds allow; one too long is alone.

    Args:
        items: in the order of the batches.
        length: of an item.
        max_tokens: the largest length of a batch's items together, all padded to the longest.
        batch_size: the largest number of items in a batch.

    Raises:
        ValueError: `max_tokens` is not above 0.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; it must be above 0")
    batch: list[ItemT] = []
    longest = 0
    for item in items:
        padded = max(longest, length(item))
        if batch and (len(batch) == batch_size or padded * (len(batch) + 1) > max_tokens):
            yield batch
            batch, padded = [], length(item)
        batch.append(item)
        longest = padded
    if batch:
        yield batch


def chunks(
    items: Iterable[ItemT], size: Callable[[ItemT], int], *, max_size: int
) -> Iterator[list[ItemT]]:
    """Divide items, in order, into chunks of at most a total size; one that is larger is alone."""
    chunk: list[ItemT] = []
    total = 0
    for item in items:
        if chunk and total + size(item) > max_size:
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size(item)
    if chunk:
        yield chunk


def sentence_digest(
    words: Sequence[str], *, separator: str | None = None, num_bytes: int = 16
) -> bytes:
    """Return the BLAKE2b digest of a sentence.

    Files contain these digests, so each kind of file keeps its separator: the layer cache has
    None, `elmo embed` the end of a line, `elmo prepare` a space.

    Args:
        words: of the sentence.
        separator: joins the words. None puts its length before each word; so does a separator
            that a word contains, and a sentence of one empty word, which joins like no words.
        num_bytes: the size of the digest.
    """
    text = "" if separator is None else separator.join(words)
    is_ambiguous = separator is not None and (
        text.count(separator) > max(0, len(words) - 1) or list(words) == [""]
    )
    if separator is None or is_ambiguous:
        text = "".join(f"{len(word)}:{word}" for word in words)
    kind = b"lengths" if is_ambiguous else b""  # so that no other digest is equal
    encoded = text.encode("utf-8", "surrogatepass")
    return blake2b(encoded, digest_size=num_bytes, person=kind).digest()
