"""Messages and progress bars on standard error, and plain-text tables for the caller to print.

Standard output is reserved for results.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, final

if TYPE_CHECKING:
    from rich.progress import Progress

_SHORTEST, _LONGEST = 5.0, 60.0
"""Bounds of the seconds between two lines, which are a twentieth of the elapsed time."""

_SCALES = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}


def info(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def format_bytes(num_bytes: int) -> str:
    """Format a number of bytes: `12.3 GB`."""
    scale = next((scale for scale in _SCALES if num_bytes >= _SCALES[scale]), None)
    return (
        plural(num_bytes, "byte") if scale is None else f"{num_bytes / _SCALES[scale]:.1f} {scale}"
    )


@final
class ProgressBar:
    """A progress bar on a terminal, occasional lines in a file or pipe.

        with ProgressBar("pretraining", total=num_words, unit="token") as progress:
            progress.advance(len(batch), note="loss 3.2")

    The first and the last line are always written.

    Args:
        description: the name of the job.
        total: the number of units, if known.
        unit: the singular noun for what is counted.
        stream: where to write; standard error by default.
        delay: seconds of work before anything is shown.
    """

    def __init__(
        self,
        description: str,
        *,
        total: int | None = None,
        unit: str = "item",
        stream: TextIO | None = None,
        delay: float = 0.0,
    ) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._stream, self._delay = stream or sys.stderr, delay
        self._done, self._note = 0, ""
        self._since = self._last = time.monotonic()
        self._is_shown = False
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        self._since = time.monotonic()
        if not self._delay:
            self._show()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._is_shown:
            elapsed = time.monotonic() - self._since
            self._write_line(elapsed, f" in {timedelta(seconds=round(elapsed))}")

    def advance(self, count: int = 1, *, note: str = "") -> None:
        self._done, self._note = self._done + count, note
        now = time.monotonic()
        elapsed = now - self._since
        if not self._is_shown:
            if elapsed < self._delay:
                return
            self._show()
        if self._bar is not None:
            counted = _counted(self._done, self._total, self._unit, elapsed)
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=self._done, count=counted, note=note)
        elif now - self._last >= min(_LONGEST, max(_SHORTEST, elapsed / 20)):
            self._last = now
            self._write_line(elapsed, _remaining(self._done, self._total, elapsed))

    def restart_clock(self) -> None:
        """Exclude the time so far from the rate and the remaining time."""
        self._since = time.monotonic()

    def _show(self) -> None:
        self._is_shown, self._last = True, time.monotonic()
        if self._stream.isatty():
            self._bar = _bar(self._stream)
            self._bar.add_task(self._description, total=self._total, count="", note="")
            self._bar.start()
        else:
            total = "" if self._total is None else f" {plural(self._total, self._unit)}"
            self._write(f"{self._description}:{total} ...")

    def _write_line(self, elapsed: float, end: str) -> None:
        counted = _counted(self._done, self._total, self._unit, elapsed)
        note = f"; {self._note}" if self._note else ""
        self._write(f"{self._description}: {counted}{end}{note}")

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _bar(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
        # Truncated first on a narrow terminal.
        TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True)),
        expand=True,
        console=Console(file=stream),
        redirect_stdout=False,  # results go there and must not mix with the bar
    )


def _counted(done: int, total: int | None, unit: str, elapsed: float) -> str:
    """Format the progress: `1,200/2,000 tokens (60 %), 345 tokens/s`."""
    counted = plural(done, unit) if total is None else f"{done:,}/{plural(total, unit)}"
    percentage = f" ({100 * done // total} %)" if total else ""
    rate = done / elapsed if elapsed > 0 else 0.0
    rounded = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    return f"{counted}{percentage}, {rounded} {plural_of(unit)}/s"


def _remaining(done: int, total: int | None, elapsed: float) -> str:
    if not (total and done):
        return ""
    seconds = elapsed * max(total - done, 0) / done
    return f", {timedelta(seconds=round(seconds))} left"


def render_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None
) -> str:
    """Format a plain-text table; columns of numbers are right-aligned.

    Args:
        headers: the names of the columns.
        rows: as many cells each.
        width: of the terminal, to wrap the last column; no wrapping by default.
    """
    body = [[*row] for row in rows]
    is_number = [all(map(_is_number, column)) for column in zip(*body, strict=True)]
    last_width = _last_column_width(headers, body, width)
    lines = [line for row in [headers, *body] for line in _wrapped(row, last_width)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    lines[1:1] = [["-" * column for column in widths]]
    return "\n".join(_line(cells, widths, is_number) for cells in lines)


def _last_column_width(
    headers: Sequence[str], body: list[list[str]], width: int | None
) -> int | None:
    if width is None:
        return None
    others = [max(map(_width, column)) for column in zip(headers, *body, strict=True)][:-1]
    return max(30, width - sum(others) - 2 * len(others))


def _wrapped(row: Sequence[str], last_width: int | None) -> list[list[str]]:
    """Wrap the last cell of a row; the other cells are on the first line."""
    *others, last = row
    first, *rest = (textwrap.wrap(last, last_width) if last_width else None) or [last]
    return [[*others, first], *([*([""] * len(others)), more] for more in rest)]


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    padded = []
    for cell, width, right in zip(cells, widths, is_number or [False] * len(cells), strict=True):
        spaces = " " * (width - _width(cell))
        padded.append(spaces + cell if right else cell + spaces)
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    from rich.cells import cell_len  # slow to import, and most commands print no table

    return cell_len(text)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").strip("%- ") or "0")
    except ValueError:
        return False
    return True


_SIBILANTS = ("s", "x", "ch", "sh")


def plural(number: int, noun: str) -> str:
    """Format a number with its regular noun: `1 batch`, `1,200 batches`."""
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a regular noun."""
    return f"{noun}es" if noun.endswith(_SIBILANTS) else f"{noun}s"
