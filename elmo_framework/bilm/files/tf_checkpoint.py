"""Read checkpoints of TensorFlow (version 2 of the format) without TensorFlow.

A checkpoint `model.ckpt-7` is `model.ckpt-7.index`, a table in the format of LevelDB, and files
`model.ckpt-7.data-00000-of-00001` with the numbers. The table maps the name of each tensor to a
`BundleEntryProto`: its type and shape, where it is, and its checksum. Sources: LevelDB,
doc/table_format.md; TensorFlow, core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from elmo_framework.bilm.files.crc32c import masked_crc32c
from elmo_framework.errors import DataError, with_hint
from elmo_framework.io.files import path_hint

_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5
"""Bytes after each block: the type of its compression and its checksum."""

_MAX_VARINT_BITS = 64
_DTYPES: Mapping[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    19: np.dtype("<f2"),
}
"""TensorFlow's numbers of types; those of other types are listed, but cannot be read."""

_Fields: TypeAlias = Mapping[int, list[int | bytes]]


@dataclass(frozen=True)
class _Entry:
    """A tensor: fields of a `BundleEntryProto`."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    is_sliced: bool


@final
class TfCheckpoint:
    """The tensors of a checkpoint.

    Args:
        path: `model.ckpt-7`, its `.index` file, or a folder with a file `checkpoint`, which names
            the latest one.

    Attributes:
        prefix: the path without suffix.
        shapes: of the tensors by their names.

    Raises:
        DataError: there is none, it is damaged, or it is of another version of the format.
    """

    def __init__(self, path: Path) -> None:
        self.prefix = checkpoint_prefix(path)
        self._index = _with_suffix(self.prefix, ".index")
        try:
            content = self._index.read_bytes()
        except OSError as error:
            raise DataError(f"cannot be read: {error}", path=self._index) from error
        self._entries = dict[str, _Entry]()
        self._num_shards = 1
        try:
            self._read_entries(content)
        except (IndexError, ValueError) as error:
            message = f"not the index of a TensorFlow checkpoint, or a damaged one: {error}"
            raise DataError(message, path=self._index) from error
        self.shapes = {name: entry.shape for name, entry in self._entries.items()}

    def tensor(self, name: str) -> NDArray[np.floating[Any]]:
        """Read a tensor of floating point numbers.

        Raises:
            DataError: it is missing, of another type, or damaged.
        """
        if name not in self._entries:
            raise DataError(f"the checkpoint has no variable {name!r}", path=self._index)
        entry = self._entries[name]
        if entry.is_sliced or entry.dtype not in _DTYPES:
            problem = (
                "is in slices" if entry.is_sliced else f"is of TensorFlow's type {entry.dtype}"
            )
            message = f"variable {name!r} {problem}; it must be one tensor of floats"
            raise DataError(message, path=self._index)
        shard = self._shard(entry.shard)
        dtype = _DTYPES[entry.dtype]
        if entry.size != int(np.prod(entry.shape, dtype=object)) * dtype.itemsize:
            message = f"variable {name!r} has {entry.size:,} bytes and the shape {entry.shape}"
            raise DataError(message, path=self._index)
        try:
            with shard.open("rb") as file:
                file.seek(entry.offset)
                data = file.read(entry.size)
        except OSError as error:
            raise DataError(f"cannot be read: {error}", path=shard) from error
        if len(data) < entry.size:
            raise DataError(f"the file ends within variable {name!r}", path=shard)
        if masked_crc32c(data) != entry.crc:
            raise DataError(f"variable {name!r} is damaged: its checksum is wrong", path=shard)
        array: NDArray[np.floating[Any]] = np.frombuffer(data, dtype)
        return array.reshape(entry.shape)

    def _shard(self, number: int) -> Path:
        return _with_suffix(self.prefix, f".data-{number:05d}-of-{self._num_shards:05d}")

    def _read_entries(self, content: bytes) -> None:
        for key, value in _table(content):
            fields = _fields(value)
            if key:
                self._entries[key.decode()] = _entry(fields)
                continue
            self._num_shards = _integer(fields, 1)  # the header has the empty key
            if _integer(fields, 2):
                raise ValueError("its numbers are big-endian, which is not supported")


def checkpoint_prefix(path: Path) -> Path:
    """Return the path of a checkpoint without suffix.

    Args:
        path: see `TfCheckpoint`.

    Raises:
        DataError: there is no checkpoint.
    """
    if path.is_dir():
        try:
            text = (path / "checkpoint").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            message = "no file 'checkpoint' in this folder; name one, such as model.ckpt-7"
            raise DataError(message, path=path) from error
        latest = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
        if latest is None:
            raise DataError("names no checkpoint", path=path / "checkpoint")
        path /= Path(latest[1]).name  # paths of the machine that trained it say nothing here
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not _with_suffix(prefix, ".index").is_file():
        if not any(prefix.parent.glob(f"{escape(prefix.name)}*")):
            raise DataError(with_hint("does not exist", path_hint(path)), path=path)
        advice = ""
        if prefix.is_file():
            advice = "; a checkpoint in one file is of TensorFlow before 0.12, and is not supported"
        raise DataError(f"no checkpoint: {prefix.name}.index does not exist{advice}", path=prefix)
    return prefix


def _with_suffix(prefix: Path, suffix: str) -> Path:
    return prefix.with_name(prefix.name + suffix)


def _table(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a table.

    Raises:
        ValueError: it is damaged.
        IndexError: it is damaged.
    """
    if len(content) < _FOOTER or content[-8:] != _MAGIC:
        raise ValueError("it does not end in the mark of a table")
    footer = content[-_FOOTER:]
    metadata, position = _handle(footer, 0)
    index, _ = _handle(footer, position)
    if list(_block(content, *metadata)):
        raise ValueError("it has metadata, which TensorFlow does not write")
    for _, handle in _block(content, *index):
        yield from _block(content, *_handle(handle, 0)[0])


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Return the offset and the size of a block, and the position after them."""
    offset, position = _varint(data, position)
    size, position = _varint(data, position)
    return (offset, size), position


def _block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; a key leaves out what it shares with the one before."""
    end = offset + size
    if end + _TRAILER > len(content):
        raise ValueError("a block is outside of the file")
    if int.from_bytes(content[end + 1 : end + _TRAILER], "little") != masked_crc32c(
        content[offset : end + 1]
    ):
        raise ValueError("the checksum of a block is wrong")
    if content[end]:
        raise ValueError("a block is compressed, which TensorFlow does not do")
    num_restarts = int.from_bytes(content[end - 4 : end], "little")
    data, position, key = content[offset : end - 4 * (num_restarts + 1)], 0, b""
    while position < len(data):
        shared, position = _varint(data, position)
        num_new, position = _varint(data, position)
        num_value, position = _varint(data, position)
        if shared > len(key) or position + num_new + num_value > len(data):
            raise ValueError("an entry is outside of its block")
        key = key[:shared] + data[position : position + num_new]
        position += num_new
        yield key, data[position : position + num_value]
        position += num_value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an integer of seven bits per byte, and the position after it."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("an integer does not end")


def _fields(message: bytes) -> _Fields:
    """Return the values of a message of Protocol Buffers by the numbers of its fields."""
    fields: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value: int | bytes
        match tag & 7:
            case 0:
                value, position = _varint(message, position)
            case 2:
                size, position = _varint(message, position)
                value, position = message[position : position + size], position + size
            case 1 | 5 as kind:
                size = 8 if kind == 1 else 4
                value = int.from_bytes(message[position : position + size], "little")
                position += size
            case kind:
                raise ValueError(f"a field has the unknown kind {kind}")
        if position > len(message):
            raise ValueError("a field is longer than its message")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _entry(fields: _Fields) -> _Entry:
    """Read a `BundleEntryProto`."""
    shape = [_fields(_bytes(dim)) for each in fields.get(2, []) for dim in _dims(_bytes(each))]
    return _Entry(
        dtype=_integer(fields, 1),
        shape=tuple(_integer(dim, 1) for dim in shape),
        shard=_integer(fields, 3),
        offset=_integer(fields, 4),
        size=_integer(fields, 5),
        crc=_integer(fields, 6),
        is_sliced=7 in fields,
    )


def _dims(shape: bytes) -> list[int | bytes]:
    return _fields(shape).get(2, [])


def _integer(fields: _Fields, number: int) -> int:
    """Return the value of a field; 0 if it is left out, as Protocol Buffers do."""
    value = fields.get(number, [0])[-1]
    if isinstance(value, bytes):
        raise ValueError(f"field {number} is not a number")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where a message is expected")
    return value
