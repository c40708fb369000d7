"""Shards: the layers of many sentences, looked up by the words of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from elmo_framework import console
from elmo_framework.bilm.layer_output import NUM_BOUNDARIES, LayerOutput, framed_mask
from elmo_framework.data.sentences import sentence_digest
from elmo_framework.data.text import TextBatch
from elmo_framework.errors import DataError
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.layers.cache.verified_blocks import VerifiedBlocks, verify_blocks
from elmo_framework.layers.layer_source import LayerSource, batch_tokens

Words: TypeAlias = Sequence[str]

ENTRY = np.dtype([("high", "<u8"), ("low", "<u8"), ("offset", "<i8"), ("num_steps", "<i8")])
"""A sentence in a shard: its digest in two halves, its first vector, its words and boundaries."""

_DIGEST = np.dtype([("high", "<u8"), ("low", "<u8")])


@dataclass(frozen=True)
class Shard:
    """The layers of some sentences.

    Attributes:
        entries: of type `ENTRY`, one a sentence.
        vectors: those of a sentence are contiguous: "layers steps", `<S>` and `</S>` among them.
        blocks: of the file that the vectors are mapped from; None for those in memory.
    """

    entries: NDArray[Any]
    vectors: Float[Tensor, "vectors dim"]
    blocks: VerifiedBlocks | None = None

    def pending(
        self, entries: NDArray[Any], num_layers: int
    ) -> list[tuple[VerifiedBlocks, list[int]]]:
        """Return the blocks of some of its entries that are not verified yet."""
        if self.blocks is None:
            return []
        vector_bytes = self.vectors.shape[1] * self.vectors.element_size()
        begins = entries["offset"] * vector_bytes
        ends = begins + entries["num_steps"] * num_layers * vector_bytes
        return [(self.blocks, self.blocks.pending(begins, ends))]


def digests(sentences: Iterable[Words]) -> NDArray[Any]:
    """Return the digest of each sentence, 128 bits as `high` and `low`."""
    return np.frombuffer(b"".join(map(sentence_digest, sentences)), _DIGEST)


def distinct(sentences: Iterable[Words]) -> list[Words]:
    """Return each sentence once, longest first; those without words have no layers."""
    unique = dict.fromkeys(tuple(words) for words in sentences if words)
    return sorted(unique, key=lambda words: -len(words))


def num_vectors(words: Words, num_layers: int) -> int:
    """Return the number of vectors in the layers of a sentence."""
    return (len(words) + NUM_BOUNDARIES) * num_layers


def moved_output(text: TextBatch, layers: Float[Tensor, "layers rows steps dim"]) -> LayerOutput:
    """Return layers that were kept for a batch, on its device."""
    moved = layers.to(text.mask.device, non_blocking=True).to(torch.get_default_dtype())
    return LayerOutput(moved, framed_mask(text.mask), {})


def compute_shard(
    source: LayerSource,
    sentences: Sequence[Words],
    device: torch.device,
    *,
    dtype: torch.dtype,
    note: Callable[[int], None],
) -> Shard:
    """Compute the layers of sentences that have words.

    Args:
        source: of the layers.
        sentences: each with a word at least.
        device: computes them.
        dtype: of the cached numbers.
        note: called with the number of words of each sentence when it is done.

    Raises:
        DataError: a number is too large for float16.
    """
    entries = np.zeros(len(sentences), ENTRY)
    own_digests = digests(sentences)
    sizes = [num_vectors(words, source.num_layers) for words in sentences]
    entries["high"], entries["low"] = own_digests["high"], own_digests["low"]
    entries["offset"] = np.cumsum([0, *sizes[:-1]])
    entries["num_steps"] = [len(words) + NUM_BOUNDARIES for words in sentences]
    vectors = torch.empty(sum(sizes), source.dim, dtype=dtype)
    read = source.read(
        sentences,
        max_tokens=batch_tokens(device),
        device=device,
        # Numbers are rounded before they travel.
        reduce=None if uses_cpu_code(device) else lambda layers: layers.to(dtype),
    )
    for index, layers in read:
        start = int(entries["offset"][index])
        vectors[start : start + sizes[index]] = layers.flatten(0, 1)
        note(len(sentences[index]))
    require_finite(vectors)
    return Shard(entries, vectors)


def require_finite(rounded: Tensor) -> None:
    """Refuse layers that were rounded to float16 and are too large for it.

    Raises:
        DataError: they are.
    """
    if rounded.dtype == torch.float16 and not rounded.isfinite().all():
        raise DataError(
            "the layers have numbers that float16 cannot hold; set cache_dtype to float32"
        )


@final
class Shards:
    """Several shards as one.

    A shard whose content has changed is left out, and a message names it.

    Attributes:
        damaged: the folders of the shards that were left out.
    """

    def __init__(self, num_layers: int, shards: Iterable[Shard] = ()) -> None:
        self._num_layers = num_layers
        self._shards = list(shards)
        self.damaged: list[Path] = []
        self._arrange()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, shard: Shard) -> None:
        self._shards.append(shard)
        self._arrange()

    def missing(self, sentences: Sequence[Words]) -> list[Words]:
        is_there, _ = self._find(sentences)
        return [
            words for words, is_cached in zip(sentences, is_there, strict=True) if not is_cached
        ]

    def verify(self, sentences: Sequence[Words]) -> None:
        self._locate(sentences)

    def read(self, text: TextBatch) -> LayerOutput | None:
        """Return the layers of a batch, on its device; None when a sentence is in no shard."""
        device = text.mask.device
        # A copy converts as it goes; to another device the narrow numbers travel faster, and from
        # pinned memory without a wait.
        dtype = torch.get_default_dtype() if uses_cpu_code(device) else None
        layers = self.numbers(text, dtype, is_pinned=device.type == "cuda")
        return None if layers is None else moved_output(text, layers)

    def numbers(
        self, text: TextBatch, dtype: torch.dtype | None = None, *, is_pinned: bool = False
    ) -> Float[Tensor, "layers rows steps dim"] | None:
        """Return the numbers of `read`, in memory.

        Args:
            text: the batch.
            dtype: of the result; by default that of the shards.
            is_pinned: whether the memory is pinned.
        """
        sentences = text.words
        rows = [row for row, words in enumerate(sentences) if words]
        is_there, indices = self._locate([sentences[row] for row in rows])
        if not len(self) or not is_there.all():
            return None
        vectors = self._shards[0].vectors
        steps = text.mask.shape[1] + NUM_BOUNDARIES
        shape = self._num_layers, len(sentences), steps, vectors.shape[1]
        layers = torch.zeros(shape, dtype=dtype or vectors.dtype, pin_memory=is_pinned)
        for row, index in zip(rows, indices, strict=True):
            vectors = self._vectors(int(index))
            layers[:, row, : vectors.shape[1]] = vectors
        return layers

    def _vectors(self, index: int) -> Float[Tensor, "layers steps dim"]:
        entry = self._entries[index]
        vectors = self._shards[self._owners[index]].vectors
        start, num_steps = int(entry["offset"]), int(entry["num_steps"])
        own: Tensor = vectors[start : start + num_steps * self._num_layers]
        return own.view(self._num_layers, num_steps, vectors.shape[1])

    def _locate(self, sentences: Sequence[Words]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Find sentences as `_find` does, in shards that are verified as far as they are read."""
        while True:
            is_there, indices = self._find(sentences)
            present = indices[is_there]
            if self._are_whole(present[~self._is_verified[present]]):
                return is_there, indices

    def _are_whole(self, indices: NDArray[np.int64]) -> bool:
        """Verify some entries; where blocks have changed, leave out their shards."""
        if not len(indices):
            return True
        pending = []
        for owner in np.unique(self._owners[indices]).tolist():
            own = self._entries[indices[self._owners[indices] == owner]]
            pending += self._shards[owner].pending(own, self._num_layers)
        damage = verify_blocks(pending)
        for path, reason in damage.items():
            console.info(f"{path.parent}: damaged: {reason}; its sentences are computed again")
            self.damaged.append(path.parent)
        if damage:
            self._shards = [
                shard
                for shard in self._shards
                if shard.blocks is None or shard.blocks.path not in damage
            ]
            self._arrange()
            return False
        self._is_verified[indices] = True
        return True

    def _arrange(self) -> None:
        """Sort the entries of all shards by their digests."""
        entries = [np.zeros(0, ENTRY), *(shard.entries for shard in self._shards)]
        joined = np.concatenate(entries)
        owners = np.repeat(
            np.arange(len(self._shards)), [len(shard.entries) for shard in self._shards]
        )
        order = np.argsort(joined["high"], kind="stable")
        self._entries, self._owners = joined[order], owners[order]
        self._high = np.ascontiguousarray(self._entries["high"])
        in_memory = np.array([shard.blocks is None for shard in self._shards], dtype=bool)
        self._is_verified = in_memory[self._owners]

    def _find(self, sentences: Sequence[Words]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which sentences are there, and the indices of their entries."""
        wanted = digests(sentences)
        if not len(self):
            return np.zeros(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=np.int64)
        indices = np.searchsorted(self._high, wanted["high"]).clip(max=len(self) - 1)
        entries = self._entries[indices]
        return (entries["high"] == wanted["high"]) & (entries["low"] == wanted["low"]), indices
