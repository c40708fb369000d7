"""Convolutions over the characters of words, frozen: compiled from `character_maxima.c`."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, byref, c_int, c_long, c_void_p
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from elmo_framework.kernels.compiler import library

_GROUP = 64
"""The number of filters in a block; `GROUP` in `packed.h`."""

_library = library(
    Path(__file__).with_suffix(".c"),
    fast_math=False,
    functions={
        "character_maxima": [
            *[c_long] * 2,
            c_void_p,
            *[c_long] * 3,
            c_void_p,
            c_long,
            *[c_void_p] * 3,
        ]
    },
)


class Convolution(NamedTuple):
    """A convolution over vectors of characters.

    Attributes:
        weight: "filters dim width".
        bias: "filters".
    """

    weight: Tensor
    bias: Tensor


class _CBlock(Structure):
    """`filter_block` of `character_maxima.c`."""

    _fields_ = (*((n, c_long) for n in ("width", "first", "number")), ("table", c_void_p))


class CharacterTables:
    """What each character adds to the windows of convolutions at each of their places.

    Args:
        vectors: "ids dim": of characters.
        convolutions: over them, without padding; their outputs are concatenated.
        padding_id: of the places after a word, besides 0.
    """

    def __init__(
        self,
        vectors: Float[Tensor, "ids dim"],
        convolutions: Sequence[Convolution],
        padding_id: int,
    ) -> None:
        self._num_ids, self._padding_id = len(vectors), padding_id
        self._tables = [_table(vectors, *each) for each in convolutions]
        self._blocks, first = list[_CBlock](), 0
        for (weight, _), table in zip(convolutions, self._tables, strict=True):
            for number, block in enumerate(table):
                remaining = len(weight) - number * _GROUP
                at = first + number * _GROUP
                sizes = weight.shape[2], at, min(_GROUP, remaining)
                self._blocks.append(_CBlock(*sizes, block.data_ptr()))
            first += len(weight)
        self._num_outputs = first
        # Threads take one after the other, so those that take longest are the first ones.
        self._blocks.sort(key=lambda block: -block.width)

    def maxima(self, ids: Int[Tensor, "words characters"]) -> Float[Tensor, "words filters"]:
        """Return the maxima over all windows, biases added.

        Raises:
            IndexError: an id is unknown.
            ValueError: there are fewer characters than a convolution is wide.
        """
        if ids.shape[1] < (width := self._blocks[0].width):
            raise ValueError(f"words of {ids.shape[1]} characters; a convolution is {width} wide")
        outputs = self._tables[0].new_empty(len(ids), self._num_outputs)
        functions = _library(outputs)
        if functions is None or not ids.is_cpu:
            raise TypeError("ids on the CPU are needed")
        ids, ends, failed = ids.long().contiguous(), ids.new_empty(len(ids)).long(), c_int(0)
        functions.character_maxima(
            *ids.shape,
            ids.data_ptr(),
            self._num_ids,
            self._padding_id,
            len(self._blocks),
            (_CBlock * len(self._blocks))(*self._blocks),
            self._num_outputs,
            ends.data_ptr(),
            outputs.data_ptr(),
            byref(failed),
        )
        if failed.value:
            raise IndexError(f"an id of a character is not below {self._num_ids}, or negative")
        return outputs


def has_tables(weight: Tensor) -> bool:
    """Return whether compiled code reads tables of a weight like this one."""
    return _library(weight.detach()) is not None


def _table(vectors: Tensor, weight: Tensor, bias: Tensor) -> Float[Tensor, "blocks ids width 64"]:
    num_filters, _, width = weight.shape
    added = torch.einsum("cd,fdj->cjf", vectors, weight)
    added[:, 0] += bias  # every window has a first place
    padded = functional.pad(added, (0, -num_filters % _GROUP))
    return padded.view(len(vectors), width, -1, _GROUP).permute(2, 0, 1, 3).contiguous()
