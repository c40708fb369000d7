"""A writer of TensorFlow's checkpoints for tests, with a table of several blocks and shards."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

MAGIC = 0xDB4775248B80FB57
NUMBERS = {"float32": 1, "float64": 2, "int64": 9, "float16": 19}


def slow_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = slow_crc32c(data)
    rotated = (crc >> 15 | crc << 17) + 0xA282EAD8
    return (rotated & 0xFFFFFFFF).to_bytes(4, "little")


def varint(value: int) -> bytes:
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*content, value])


def block(entries: list[tuple[bytes, bytes]], compression: int) -> bytes:
    content, before = b"", b""
    for key, value in entries:
        shared = 0
        while shared < min(len(key), len(before)) and key[shared] == before[shared]:
            shared += 1
        content += varint(shared) + varint(len(key) - shared) + varint(len(value))
        content += key[shared:] + value
        before = key
    content += bytes(4) + (1).to_bytes(4, "little")  # one restart, at 0
    content += bytes([compression])
    return content + masked(content)


def table(entries: Mapping[bytes, bytes], *, compression: int = 0, per_block: int = 3) -> bytes:
    content, index, ordered = b"", [], sorted(entries.items())
    for start in range(0, len(ordered), per_block):
        part = ordered[start : start + per_block]
        written = block(part, compression)
        index.append((part[-1][0], varint(len(content)) + varint(len(written) - 5)))
        content += written
    handles = b""
    for part in ([], index):
        written = block(part, 0)
        handles += varint(len(content)) + varint(len(written) - 5)
        content += written
    return content + handles.ljust(40, b"\0") + MAGIC.to_bytes(8, "little")


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def entry(array: np.ndarray, shard: int, offset: int, *, extra: bytes = b"") -> bytes:
    data = array.tobytes()
    shape = b"".join(field(2, field(1, size)) for size in array.shape)
    checksum = varint(6 << 3 | 5) + masked(data)
    content = field(1, NUMBERS[str(array.dtype)]) + field(2, shape) + field(3, shard)
    return content + field(4, offset) + field(5, len(data)) + checksum + extra


def write_checkpoint(
    prefix: Path, tensors: Mapping[str, np.ndarray], *, num_shards: int = 1, **options: int
) -> Path:
    entries, shards = {b"": field(1, num_shards)}, [b""] * num_shards
    for number, (name, array) in enumerate(tensors.items()):
        shard = number % num_shards
        entries[name.encode()] = entry(array, shard, len(shards[shard]))
        shards[shard] += array.tobytes()
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries, **options))
    for shard, data in enumerate(shards):
        name = f"{prefix.name}.data-{shard:05d}-of-{num_shards:05d}"
        prefix.with_name(name).write_bytes(data)
    return prefix
