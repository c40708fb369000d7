"""Frozen layers that are computed once for each sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

import torch

from elmo_framework import console
from elmo_framework.bilm.layer_output import LayerOutput, LayerState
from elmo_framework.console import ProgressBar, format_bytes, plural
from elmo_framework.data.sentences import chunks
from elmo_framework.data.text import TextBatch
from elmo_framework.errors import DataError
from elmo_framework.kernels.product import ARITHMETIC, Precision
from elmo_framework.layers.cache.layer_cache import DTYPES, CacheKey, LayerCache
from elmo_framework.layers.cache.shards import (
    Shard,
    Shards,
    Words,
    compute_shard,
    distinct,
    moved_output,
    num_vectors,
    require_finite,
)
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.model.part import Reference, Sentences

CacheDtype: TypeAlias = Literal["float16", "float32"]

_SHARD_BYTES = 256 * 10**6
"""The most that a killed build loses, and the memory that it takes."""


@final
class CachedLayers(LayerSource):
    """Gives the layers of batches from a cache, and computes those of sentences not in it.

    The weights are loaded only when something is computed. Only `precompute` adds to the cache.

    `copy.deepcopy` shares it. A pickle contains how to open it again and its fingerprint, not the
    layers that are cached in memory.

    Args:
        shape: the frozen source, without its weights.
        reopen: opens the frozen source, or, with `cache` and `cache_dtype`, this one; picklable.
        fingerprint: of the files of the source.
        cache: whether layers are kept on the disk or until the process ends.
        dtype: of cached numbers; all layers are rounded to it.
        precision: of the products that compute the layers.
    """

    def __init__(
        self,
        shape: LayerSource,
        reopen: Callable[..., LayerSource],
        *,
        fingerprint: Reference,
        cache: Literal["disk", "memory"],
        dtype: CacheDtype,
        precision: Precision = "float32",
    ) -> None:
        super().__init__(
            num_layers=shape.num_layers,
            dim=shape.dim,
            fingerprint=fingerprint,
            num_frozen_parameters=shape.num_frozen_parameters,
            variant=shape.variant,
        )
        self._reopen, self._cache = reopen, cache
        default_dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        self._digest = fingerprint.digest
        self._key = CacheKey(
            f"{self._digest} {self.variant}".rstrip(),
            self.num_layers,
            self.dim,
            dtype,
            default_dtype if precision == "float32" else ARITHMETIC[precision],
        )
        self.dtype: CacheDtype = dtype
        self._layer_cache = LayerCache(self._key, source=fingerprint.path)

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedLayers:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"cache": self._cache, "cache_dtype": self._key.dtype}
        return _reopened, (self._reopen, self._digest, options)

    @cached_property
    def _shards(self) -> Shards:
        return Shards(
            self.num_layers, [] if self._cache == "memory" else self._layer_cache.shards()
        )

    @cached_property
    def frozen(self) -> LayerSource:
        """The source that computes what is not cached."""
        return self._load()

    def _load(self) -> LayerSource:
        return _reopened(self._reopen, self._digest, {})

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of a batch, all from the cache or all computed.

        Computed layers are rounded as cached ones are, so that a cache changes no result.

        Raises:
            DataError: a number is too large for float16.
        """
        if state is None and (ahead := text.read_ahead.get(self._key.key)) is not None:
            return moved_output(text, ahead)
        with self.lock:
            cached = self._shards.read(text) if state is None else None
            if cached is not None:
                return cached
            output = self.frozen.compute(text, state)
        rounded = output.layers.to(DTYPES[self._key.dtype])
        require_finite(rounded)
        return replace(output, layers=rounded.to(output.layers.dtype))

    def read_ahead(self, text: TextBatch) -> TextBatch:
        if (key := self._key.key) in text.read_ahead:
            return text
        with self.lock:
            numbers = self._shards.numbers(text)
        if numbers is None:
            return text
        return replace(text, read_ahead={**text.read_ahead, key: numbers})

    def precompute(self, sentences: Sentences, device: torch.device) -> None:
        """Compute the layers of all sentences that are not in the cache yet.

        Layers that cannot be cached are computed whenever they are read; a message reports why.
        """
        all_sentences = distinct(sentences())
        self._shards.verify(all_sentences)
        if not self._shards.missing(all_sentences):
            return
        if self._cache == "memory":
            self._build(self._shards.missing(all_sentences), device, add=self._shards.add)
            return
        try:
            self._build_on_disk(all_sentences, device)
        except OSError as error:
            console.info(f"{error}; layers that are not cached are computed for each batch")

    def _build_on_disk(self, wanted: Sequence[Words], device: torch.device) -> None:
        cache = self._layer_cache
        with cache.locked():
            cache.remove_damaged(self._shards.damaged)
            # While this process waited for the lock, another may have built what it needs.
            self._shards = Shards(self.num_layers, cache.shards())
            missing = self._shards.missing(wanted)
            if missing:
                cache.require_space(self._num_bytes(missing))
                self._build(missing, device, add=lambda shard: self._shards.add(cache.write(shard)))

    def _build(
        self, missing: Sequence[Words], device: torch.device, *, add: Callable[[Shard], None]
    ) -> None:
        """Compute layers a shard at a time; the weights are released afterwards."""
        num_tokens = sum(map(len, missing))
        console.info(
            f"layers of {plural(len(missing), 'sentence')} ({plural(num_tokens, 'word')}) are "
            f"computed once and cached: {format_bytes(self._num_bytes(missing))}"
        )
        source = self._load()
        max_vectors = _SHARD_BYTES // self._key.vector_bytes
        dtype = DTYPES[self._key.dtype]
        with ProgressBar("computing layers", total=num_tokens, unit="word") as progress:
            for chunk in chunks(missing, self._num_vectors, max_size=max_vectors):
                # So that a build that was killed continues to the same bits.
                source.forget_words()
                add(compute_shard(source, chunk, device, dtype=dtype, note=progress.advance))

    def _num_bytes(self, sentences: Sequence[Words]) -> int:
        return sum(map(self._num_vectors, sentences)) * self._key.vector_bytes

    def _num_vectors(self, words: Words) -> int:
        return num_vectors(words, self.num_layers)


def _reopened(
    reopen: Callable[..., LayerSource], digest: str, options: dict[str, Any]
) -> LayerSource:
    """Open a source again.

    Raises:
        DataError: its files are gone, or have other content now.
    """
    source = reopen(**options)
    fingerprint = source.fingerprint
    if fingerprint is not None and fingerprint.digest != digest:
        raise DataError(
            "another encoder is here now than when the model was built", path=fingerprint.path
        )
    return source
