"""CRC-32C (Castagnoli), the checksum of LevelDB and TensorFlow, in NumPy.

A checkpoint of the published biLM has 2 GB. A loop over its bytes in Python would take half an
hour, so each block is cut into lanes that are computed side by side and joined afterwards: without
the initial value the checksum is linear over GF(2), crc(a + b) = shift(crc(a), len(b)) ^ crc(b).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # reversed
_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8  # LevelDB, util/crc32c.h
_WORDS_PER_LANE, _MAX_LANES = 256, 1 << 14
_WORD = 4

_Words = NDArray[np.uint32]


def masked_crc32c(data: bytes | memoryview) -> int:
    """Return the checksum in the form in which LevelDB stores it: rotated, plus a constant."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _ONES


def crc32c(data: bytes | memoryview) -> int:
    """Return the checksum of bytes."""
    state, view = _ONES, memoryview(data)
    block = _WORD * _WORDS_PER_LANE * _MAX_LANES
    for start in range(0, len(view), block):
        state = _advanced(state, view[start : start + block])
    return state ^ _ONES


def _advanced(state: int, block: memoryview) -> int:
    """Return the state of the register after a block."""
    if len(block) < _WORD:
        for byte in block:
            state = (state >> 8) ^ int(_byte_table()[(state ^ byte) & 0xFF])
        return state
    num_lanes = 1
    while _WORD * _WORDS_PER_LANE * num_lanes < len(block):
        num_lanes *= 2
    padded = np.zeros(_WORD * _WORDS_PER_LANE * num_lanes, np.uint8)
    padded[len(padded) - len(block) :] = block  # zeros in front change nothing
    start = len(padded) - len(block)
    padded[start : start + _WORD] ^= np.frombuffer(state.to_bytes(_WORD, "little"), np.uint8)
    lanes = np.ascontiguousarray(padded.view("<u4").reshape(num_lanes, _WORDS_PER_LANE).T)
    low, high = _word_tables()
    crcs = np.zeros(num_lanes, np.uint32)
    for words in lanes:
        crcs ^= words
        crcs = low[crcs & 0xFFFF] ^ high[crcs >> 16]
    shift = _lane_shift()
    while len(crcs) > 1:
        crcs = _apply(shift, crcs[0::2]) ^ crcs[1::2]
        shift = _apply(shift, shift)
    return int(crcs[0])


@cache
def _byte_table() -> _Words:
    """Return the register after one byte, for each low byte of a register."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@cache
def _word_shift() -> _Words:
    """Return the shift by four zero bytes: its image of each bit of the register."""
    images = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    for _ in range(_WORD):
        images = (images >> 8) ^ _byte_table()[images & 0xFF]
    return images


@cache
def _word_tables() -> tuple[_Words, _Words]:
    """Return the shift by four zero bytes of the low and of the high half of a register."""
    halves = np.arange(1 << 16, dtype=np.uint32)
    return _apply(_word_shift(), halves), _apply(_word_shift(), halves << np.uint32(16))


@cache
def _lane_shift() -> _Words:
    shift = _word_shift()
    for _ in range(_WORDS_PER_LANE.bit_length() - 1):
        shift = _apply(shift, shift)
    return shift


def _apply(shift: _Words, registers: _Words) -> _Words:
    """Return the images of registers under a linear map."""
    images = np.zeros_like(registers)
    for bit, image in enumerate(shift):
        images ^= np.where((registers >> np.uint32(bit)) & 1, image, np.uint32(0))
    return images
