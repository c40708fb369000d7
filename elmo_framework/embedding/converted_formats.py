"""Formats of shards that are written from finished vectors: parquet, safetensors and int8.

The vectors are first written into a folder of `NpyFolderFormat`, which then becomes the shard. So
memory holds a few sentences at a time, and each vector is complete when its scale is computed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, final

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from elmo_framework.embedding.arrow_files import ParquetVectors, require_pyarrow
from elmo_framework.embedding.corpus import CorpusIndex, Line
from elmo_framework.embedding.vector_file_format import (
    FORMAT,
    HEADER,
    KIND,
    NpyFolderFormat,
    VectorFileFormat,
    VectorShape,
    write_npy_header,
)
from elmo_framework.io.files import remove, write_text

_CHUNK_BYTES = 16 << 20
"""The vectors that are converted at a time."""

_SAFETENSORS_TYPES = {"float32": "F32", "float16": "F16", "int8": "I8", "int64": "I64"}


def quantize(vectors: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors "... dim" as int8, and their scales "...": a vector is numbers times scale.

    The largest number of a vector becomes 127, so a number is off by at most half of its scale,
    1/254 of the largest.
    """
    scales = np.abs(vectors).max(axis=-1, initial=0).astype(np.float32) / np.float32(127)
    divisors = np.where(scales == 0, 1, scales)[..., None]
    return np.rint(vectors / divisors).astype(np.int8), scales


@final
@dataclass(frozen=True)
class FinishedVectors:
    """The vectors of a shard, to be written in another format.

    Attributes:
        vectors: "words rows dim", or "words dim" where a word has one vector; memory-mapped.
        index: "lines 2": where each line's vectors begin, and how many there are.
        lines: reads the lines.
        shape: of the vectors.
        is_quantized: whether to write int8 and scales.
    """

    vectors: NDArray[Any]
    index: NDArray[np.int64]
    lines: Callable[[], Iterable[Line]]
    shape: VectorShape
    is_quantized: bool

    @property
    def dtype(self) -> str:
        return "int8" if self.is_quantized else self.shape.dtype

    @property
    def shapes(self) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        """The type and the shape of each array."""
        shape = self.vectors.shape
        arrays = {"vectors": (self.dtype, shape)}
        return arrays | ({"scales": ("float32", shape[:-1])} if self.is_quantized else {})

    @property
    def header(self) -> dict[str, Any]:
        return {
            "format": f"{KIND} {FORMAT}",
            "shape": self.vectors.shape,
            "dtype": self.dtype,
            "num_lines": len(self.index),
        }

    def arrays(self, vectors: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what is written for some vectors, by the name of the array."""
        if not self.is_quantized:
            return {"vectors": vectors}
        return dict(zip(("vectors", "scales"), quantize(vectors), strict=True))

    def chunks(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield one of the arrays in parts."""
        size = max(1, _CHUNK_BYTES // self.shape.num_bytes)
        for start in range(0, len(self.vectors), size):
            yield self.arrays(self.vectors[start : start + size])[name]

    def sentences(self) -> Iterator[tuple[Line, dict[str, NDArray[Any]]]]:
        """Yield each line and its arrays."""
        for line, (begin, length) in zip(self.lines(), self.index.tolist(), strict=True):
            yield line, self.arrays(self.vectors[begin : begin + length])


class ConvertedFormat(VectorFileFormat, ABC):
    """A format that is written when all vectors are.

    Args:
        shape: the shape and type of the vectors before they are quantized.
        is_quantized: whether to write int8 and scales.
    """

    def __init__(self, shape: VectorShape, *, is_quantized: bool) -> None:
        super().__init__(shape)
        self._is_quantized, self._scratch = is_quantized, NpyFolderFormat(shape)

    def num_bytes(self, corpus_index: CorpusIndex) -> int:
        return self._scratch.num_bytes(corpus_index)

    def create(
        self, path: Path, corpus_index: CorpusIndex, lines: Callable[[], Iterable[Line]]
    ) -> NDArray[np.int64]:
        return self._scratch.create(path, corpus_index, lines)

    def file(self, path: Path) -> Path:
        return self._scratch.file(path)

    def complete(
        self,
        path: Path,
        corpus_index: CorpusIndex,
        lines: Callable[[], Iterable[Line]],
        offsets: NDArray[np.int64],
    ) -> None:
        converted = path.with_name(f"{path.name}.converted")
        remove(converted)
        vectors = np.load(self.file(path), mmap_mode="r")
        index = np.stack([corpus_index.offsets, corpus_index.lengths], axis=1)
        try:
            finished = FinishedVectors(vectors, index, lines, self.shape, self._is_quantized)
            self.convert(finished, converted)
        except BaseException:
            remove(converted)
            raise
        remove(path)
        converted.replace(path)

    @abstractmethod
    def convert(self, vectors: FinishedVectors, path: Path) -> None:
        """Write the result."""


@final
class QuantizedNpyFormat(ConvertedFormat):
    """The folder of `NpyFolderFormat` with int8 in `vectors.npy`, and `scales.npy`."""

    def convert(self, vectors: FinishedVectors, path: Path) -> None:
        path.mkdir()
        for name, (dtype, shape) in vectors.shapes.items():
            with (path / f"{name}.npy").open("wb") as file:
                write_npy_header(file, shape, dtype)
                for chunk in vectors.chunks(name):
                    file.write(np.ascontiguousarray(chunk).data)
        np.save(path / "index.npy", vectors.index)
        write_text(path / HEADER, json.dumps(vectors.header, indent=2) + "\n")


@final
class SafetensorsFormat(ConvertedFormat):
    """The arrays `index`, `vectors` and, of int8, `scales` in one safetensors file.

    Written piece by piece: the library takes whole tensors, and a shard may have gigabytes.
    """

    def convert(self, vectors: FinishedVectors, path: Path) -> None:
        shapes = {"index": ("int64", vectors.index.shape), **vectors.shapes}
        metadata = {name: str(value) for name, value in vectors.header.items()}
        header, end = dict[str, Any](__metadata__=metadata), 0
        for name, (dtype, shape) in shapes.items():
            begin, end = end, end + int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            header[name] = {
                "dtype": _SAFETENSORS_TYPES[dtype],
                "shape": shape,
                "data_offsets": [begin, end],
            }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)  # numbers begin at a multiple of eight
        with path.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.write(np.ascontiguousarray(vectors.index).data)
            for name in vectors.shapes:
                for chunk in vectors.chunks(name):
                    file.write(np.ascontiguousarray(chunk).data)


@final
class ParquetFormat(ConvertedFormat):
    """A Parquet file with a row per line; see `ParquetVectors`."""

    def __init__(self, shape: VectorShape, *, is_quantized: bool) -> None:
        require_pyarrow()
        super().__init__(shape, is_quantized=is_quantized)

    def convert(self, vectors: FinishedVectors, path: Path) -> None:
        metadata = {name: str(value) for name, value in vectors.header.items()}
        metadata["elmo_framework"] = metadata.pop("format")
        longest = int(vectors.index[:, 1].max(initial=1)) or 1
        rows = max(1, _CHUNK_BYTES // (longest * self.shape.num_bytes))
        sentences = vectors.sentences()
        with ParquetVectors(path, is_pooled=self.shape.is_pooled, metadata=metadata) as file:
            while batch := list(islice(sentences, rows)):
                file.write(
                    [line.id for line, _ in batch],
                    [line.tokens or () for line, _ in batch],
                    {
                        name: np.concatenate([arrays[name] for _, arrays in batch])
                        for name in vectors.shapes
                    },
                )


@final
class QuantizedHdf5Format(ConvertedFormat):
    """A dataset "0", "1", ... of int8 for each line, and its scales as "scales/0", ..."""

    def convert(self, vectors: FinishedVectors, path: Path) -> None:
        with h5py.File(path, "w") as file:
            for number, (_, arrays) in enumerate(vectors.sentences()):
                for name, array in arrays.items():
                    key = str(number) if name == "vectors" else f"{name}/{number}"
                    file[key] = self._arranged(array)

    def _arranged(self, array: NDArray[Any]) -> NDArray[Any]:
        """Turn "words rows ..." into the "rows words ..." of HDF5; a pooled line has no words."""
        if self.shape.is_pooled:
            return np.squeeze(array, axis=0)
        return array if self.shape.rows is None else array.swapaxes(0, 1)
