"""A frozen biLM whose layers are computed once for each sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, final
from weakref import WeakValueDictionary

import torch

from elmo_framework import console
from elmo_framework.bilm.bilm import BiLm, BiLmOutput
from elmo_framework.bilm.files.load import BiLmFiles, read_bilm, reference
from elmo_framework.console import ProgressBar, format_bytes, plural
from elmo_framework.data.text import TextBatch
from elmo_framework.errors import DataError
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.shards import (
    Shard,
    Shards,
    Words,
    compute_shard,
    distinct,
    num_vectors,
    portions,
)
from elmo_framework.layers.cache.store import DTYPES, CacheKey, LayerStore
from elmo_framework.layers.frozen import FrozenBiLm, frozen_bilm
from elmo_framework.layers.layer_encoder import LayerEncoder

CacheDtype: TypeAlias = Literal["float16", "float32"]

_SHARD_BYTES = 256 * 10**6
"""What a build that dies loses at most, and what it holds in memory."""


@final
class CachedBiLm:
    """Gives the layers of batches from a store, and computes those of sentences not in it.

    The weights are loaded only when something is computed. Only `prepare` adds to the store.

    `copy.deepcopy` shares it. A pickle holds the paths of the files and their digest; layers
    that are kept in memory stay behind.

    Args:
        files: of the biLM.
        digest: of their content.
        in_memory: whether the store lasts as long as the process, instead of lying on the disk.
        dtype: in which layers are kept.
        precision: of the products that compute them.

    Attributes:
        shape: the biLM without its weights.
    """

    def __init__(
        self,
        files: BiLmFiles,
        *,
        digest: str,
        in_memory: bool,
        dtype: CacheDtype,
        precision: Precision = "float32",
    ) -> None:
        with torch.device("meta"):
            self.shape: BiLm = read_bilm(files)
        self._files, self._digest, self._in_memory = files, digest, in_memory
        self._precision = precision
        computed_in = str(torch.get_default_dtype()).removeprefix("torch.")
        self._contents = CacheKey(
            digest,
            self.shape.num_layers,
            self.shape.output_dim,
            dtype,
            computed_in if precision == "float32" else precision,
        )
        self._last: tuple[TextBatch, BiLmOutput] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> CachedBiLm:
        """Return the same biLM, with the same store."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle holds."""
        contents = self._contents
        described = self._digest, self._in_memory, contents.dtype, self._precision
        return _unpickled, (self._files, *described)

    @cached_property
    def _shards(self) -> Shards:
        held: list[Shard] = [] if self._in_memory else self._store.shards()
        return Shards(self.shape.num_layers, held)

    @cached_property
    def _store(self) -> LayerStore:
        return LayerStore(self._contents, source=self._files.weights.absolute())

    @cached_property
    def _frozen(self) -> FrozenBiLm:
        return self._loaded()

    def _loaded(self) -> FrozenBiLm:
        return frozen_bilm(self._files, digest=self._digest, precision=self._precision)

    def read(self, text: TextBatch) -> BiLmOutput:
        """Return the layers of a batch; asked for the last one again, what it gave before."""
        if self._last is None or self._last[0] is not text:
            self._last = text, self._shards.read(text) or self._compute(text)
        return self._last[1]

    def _compute(self, text: TextBatch) -> BiLmOutput:
        """Compute the layers of a batch, rounded as they are kept: a store changes no result."""
        output = self._frozen.compute(text)
        kept = output.layers.to(DTYPES[self._contents.dtype])
        return replace(output, layers=kept.to(output.layers.dtype))

    def prepare(self, sentences: Sequence[Words], device: torch.device) -> None:
        """Compute the layers of all sentences that are not there yet.

        What cannot be kept is computed whenever it is read; a message says why.

        Args:
            sentences: any, repeated or not.
            device: where the layers are computed.
        """
        wanted = distinct(sentences)
        self._shards.verify(wanted)
        if not self._shards.missing(wanted):
            return
        if self._in_memory:
            self._build(self._shards.missing(wanted), device, keep=self._shards.add)
            return
        try:
            self._build_on_disk(wanted, device)
        except OSError as error:
            console.info(f"{error}; layers that are not stored are computed for each batch")

    def _build_on_disk(self, wanted: Sequence[Words], device: torch.device) -> None:
        store = self._store
        with store.locked():
            store.remove_damaged(self._shards.damaged)
            # While this process waited for the lock, another may have built what it needs.
            self._shards = Shards(self.shape.num_layers, store.shards())
            missing = self._shards.missing(wanted)
            if missing:
                store.require_room(self._num_bytes(missing))
                self._build(
                    missing, device, keep=lambda shard: self._shards.add(store.write(shard))
                )

    def _build(
        self, missing: Sequence[Words], device: torch.device, *, keep: Callable[[Shard], None]
    ) -> None:
        """Compute layers a shard at a time; the weights are let go in the end."""
        num_tokens = sum(map(len, missing))
        console.info(
            f"layers of {plural(len(missing), 'sentence')} ({plural(num_tokens, 'word')}) are "
            f"computed once and kept: {format_bytes(self._num_bytes(missing))}"
        )
        reader = LayerEncoder(self._loaded(), device=device)
        most = _SHARD_BYTES // self._contents.vector_bytes
        dtype = DTYPES[self._contents.dtype]
        with ProgressBar("computing layers", total=num_tokens, unit="word") as progress:
            for portion in portions(missing, num_layers=self.shape.num_layers, most=most):
                # So that a build that was killed goes on to the same bits.
                reader.frozen.forget()
                keep(compute_shard(reader, portion, dtype=dtype, note=progress.advance))

    def _num_bytes(self, sentences: Sequence[Words]) -> int:
        total = sum(num_vectors(words, self.shape.num_layers) for words in sentences)
        return total * self._contents.vector_bytes


_Key: TypeAlias = tuple[str, bool, CacheDtype, Precision, torch.device, torch.dtype]
_held: WeakValueDictionary[_Key, CachedBiLm] = WeakValueDictionary()


def cached_bilm(
    files: BiLmFiles, *, digest: str, in_memory: bool, dtype: CacheDtype, precision: Precision
) -> CachedBiLm:
    """Return the biLM of some files with its store; one that is in use is shared.

    Args:
        files: of the biLM.
        digest: of their content (`load.reference`).
        in_memory: see `CachedBiLm`.
        dtype: see `CachedBiLm`.
        precision: see `CachedBiLm`.

    Raises:
        DataError: the options cannot be read.
    """
    where = torch.get_default_device(), torch.get_default_dtype()
    key = digest, in_memory, dtype, precision, *where
    held = _held.get(key)
    if held is None:
        held = CachedBiLm(
            files, digest=digest, in_memory=in_memory, dtype=dtype, precision=precision
        )
        _held[key] = held
    return held


def _unpickled(
    files: BiLmFiles, digest: str, in_memory: bool, dtype: CacheDtype, precision: Precision
) -> CachedBiLm:
    """Return the biLM of a pickle.

    Raises:
        DataError: its files are gone, or are those of another biLM now.
    """
    if reference(files).digest != digest:
        raise DataError(
            "another biLM is here now than when the model was saved", path=files.weights
        )
    return cached_bilm(files, digest=digest, in_memory=in_memory, dtype=dtype, precision=precision)
