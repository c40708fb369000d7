"""Overlapping windows over a text that is too long to be read at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple


class Window(NamedTuple):
    """Steps of a text that are read together: words, or pieces of them.

    Attributes:
        start: the first step.
        end: the step after the last.
        first: the first step whose vector is used.
        last: the step after the last whose vector is used.
    """

    start: int
    end: int
    first: int
    last: int


def windows(num_steps: int, size: int) -> Iterator[Window]:
    """Yield overlapping windows over a text; one where it fits.

    Each window begins half a window after the one before; the last ends with the last step. The
    overlap of two windows is divided in its middle, so that each step has context on both sides.

    Args:
        num_steps: of the text.
        size: the number of steps of a window, 2 or more.
    """
    if num_steps <= size:
        yield Window(0, num_steps, 0, num_steps)
        return
    starts = [*range(0, num_steps - size, size // 2), num_steps - size]
    middles = [(before + size + after) // 2 for before, after in pairwise(starts)]
    bounds = [0, *middles, num_steps]
    for start, (first, last) in zip(starts, pairwise(bounds), strict=True):
        yield Window(start, start + size, first, last)
