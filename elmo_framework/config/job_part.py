"""The part of a job that several independent jobs share: `--part I/N`."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import NamedTuple


class JobPart(NamedTuple):
    """One of several jobs that share the work: part `number` of `total`, from 0."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def includes(self, unit: int) -> bool:
        """Return whether a unit of work, counted from 0, belongs to this part."""
        return unit % self.total == self.number


WHOLE = JobPart(0, 1)
"""The only part of a job that shares no work."""


def parse_part(text: str) -> JobPart:
    """Parse `I/N`.

    Raises:
        ArgumentTypeError: this is not a part.
    """
    number, _, total = text.partition("/")
    if not (number.isdecimal() and total.isdecimal() and int(number) < int(total)):
        raise ArgumentTypeError(
            f"{text!r} is not a part I/N with I from 0 to N - 1, such as 0/4 or 3/4"
        )
    return JobPart(int(number), int(total))
