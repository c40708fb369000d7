"""Messages and progress bars on standard error, and plain-text tables for the caller to print.

Standard output is reserved for results.
"""

from __future__ import annotations

import sys
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import TextIO, final

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
        stream = stream or sys.stderr
        self._delay, self._is_shown, self._hidden = delay, False, 0
        kind = _Bar if stream.isatty() else _Lines
        self._display: _ProgressDisplay = kind(description, total, unit, stream)

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
        if self._is_shown:
            self._display.stop()

    def advance(self, count: int = 1, *, note: str = "") -> None:
        """Count completed units, and show a note such as the loss."""
        if not self._is_shown:
            self._hidden += count
            if time.monotonic() - self._since < self._delay:
                return
            self._show()
            count = self._hidden
        self._display.advance(count, note)

    def restart_clock(self) -> None:
        """Exclude the time so far from the rate and the remaining time."""
        self._since = self._display.since = time.monotonic()

    def _show(self) -> None:
        self._display.start()
        self._display.since, self._is_shown = self._since, True


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
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines[1:1] = [["-" * column for column in widths]]
    return "\n".join(_line(cells, widths, is_number) for cells in lines)


def _last_column_width(
    headers: Sequence[str], body: list[list[str]], width: int | None
) -> int | None:
    if width is None:
        return None
    others = [max(map(len, column)) for column in zip(headers, *body, strict=True)][:-1]
    return max(30, width - sum(others) - 2 * len(others))


def _wrapped(row: Sequence[str], last_width: int | None) -> list[list[str]]:
    """Wrap the last cell of a row; the other cells are on the first line."""
    *others, last = row
    first, *rest = (textwrap.wrap(last, last_width) if last_width else None) or [last]
    return [[*others, first], *([*([""] * len(others)), more] for more in rest)]


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    columns = zip(cells, widths, is_number or [False] * len(cells), strict=True)
    return "  ".join(
        cell.rjust(width) if right else cell.ljust(width) for cell, width, right in columns
    ).rstrip()


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").strip("%- ") or "0")
    except ValueError:
        return False
    return True


class _ProgressDisplay(ABC):
    since: float

    def __init__(self, description: str, total: int | None, unit: str, stream: TextIO) -> None:
        self.description, self.total, self.unit, self.stream = description, total, unit, stream
        self.since = time.monotonic()

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def advance(self, count: int, note: str) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...


@final
class _Bar(_ProgressDisplay):
    """A bar with rate and remaining time, drawn by rich."""

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        self.done = 0
        self.since = time.monotonic()
        self.bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
            # Truncated first on a narrow terminal.
            TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True)),
            expand=True,
            console=Console(file=self.stream),
            redirect_stdout=False,  # results go there and must not mix with the bar
        )
        self.task = self.bar.add_task(self.description, total=self.total, count="", note="")
        self.bar.start()

    def advance(self, count: int, note: str) -> None:
        self.done += count
        shown = _counted(self.done, self.total, self.unit, time.monotonic() - self.since)
        self.bar.update(self.task, advance=count, count=shown, note=note)

    def stop(self) -> None:
        self.bar.stop()


@final
class _Lines(_ProgressDisplay):
    """Lines of text for a file or a pipe; the first and the last are always written."""

    def start(self) -> None:
        self.since = self.last = time.monotonic()
        self.done, self.note = 0, ""
        total = "" if self.total is None else f" {plural(self.total, self.unit)}"
        self._write(f"{self.description}:{total} ...")

    def advance(self, count: int, note: str) -> None:
        self.done, self.note = self.done + count, note
        now = time.monotonic()
        elapsed = now - self.since
        if now - self.last >= min(_LONGEST, max(_SHORTEST, elapsed / 20)):
            self.last = now
            self._write_count(elapsed, _remaining(self.done, self.total, elapsed))

    def stop(self) -> None:
        elapsed = time.monotonic() - self.since
        self._write_count(elapsed, f" in {timedelta(seconds=round(elapsed))}")

    def _write_count(self, elapsed: float, end: str) -> None:
        note = f"; {self.note}" if self.note else ""
        counted = _counted(self.done, self.total, self.unit, elapsed)
        self._write(f"{self.description}: {counted}{end}{note}")

    def _write(self, line: str) -> None:
        self.stream.write(f"{line}\n")
        self.stream.flush()


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


_SIBILANTS = ("s", "x", "ch", "sh")


def plural(number: int, noun: str) -> str:
    """Format a number with its regular noun: `1 batch`, `1,200 batches`."""
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a regular noun."""
    return f"{noun}es" if noun.endswith(_SIBILANTS) else f"{noun}s"
