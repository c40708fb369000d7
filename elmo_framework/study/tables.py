"""Tables of numbers, each with the runs that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmo_framework.analysis.statistics import Estimate

NONE, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Link:
    """A link to the record of a run."""

    text: str
    target: str
    title: str


@dataclass(frozen=True)
class TableCell:
    """A cell of a table.

    Attributes:
        text: of the cell, after the links.
        title: the source of the text, shown when pointed at.
        links: to records.
        picture: SVG, on the page only.
        is_text: whether it is aligned to the left.
    """

    text: str = ""
    title: str = ""
    links: Sequence[Link] = ()
    picture: str = ""
    is_text: bool = False


@dataclass(frozen=True)
class Table:
    """A table; a header that is empty is that of pictures, on the page only."""

    headers: Sequence[str]
    rows: Sequence[Sequence[TableCell]]

    def is_text(self, column: int) -> bool:
        return any(row[column].is_text for row in self.rows)

    def without(self, header: str) -> Table:
        """Return the table without a column."""
        columns = [number for number, each in enumerate(self.headers) if each != header]
        rows = [[row[column] for column in columns] for row in self.rows]
        return Table([self.headers[column] for column in columns], rows)


@dataclass(frozen=True)
class Scale:
    """How scores are shown.

    Attributes:
        is_percent: whether they are parts of 1, shown in per cent.
    """

    is_percent: bool

    @classmethod
    def of(cls, metric: str, scores: Sequence[float]) -> Scale:
        """Return the scale of the scores of a metric with its sign."""
        return cls(metric.startswith("+") and all(0 <= score <= 1 for score in scores))

    @property
    def unit(self) -> str:
        return " in %" if self.is_percent else ""

    @property
    def factor(self) -> int:
        return 100 if self.is_percent else 1

    def show(self, value: float | None, *, sign: str = "") -> str:
        if value is None:
            return NONE
        text = f"{100 * value:{sign}.2f}" if self.is_percent else f"{value:{sign}.4g}"
        return text.replace("-", MINUS)

    def show_interval(self, estimate: Estimate, *, sign: str = "") -> str:
        """Format an interval, within the range of the scores; `sign` is for differences."""
        interval = estimate.interval
        if self.is_percent:
            interval = estimate.interval_of_ratio(is_difference=bool(sign))
        if interval is None:
            return NONE
        return " to ".join(self.show(value, sign=sign) for value in interval)


def percent(fraction: float) -> str:
    """Format a part of 1: `2.5 %`."""
    return f"{100 * fraction:g} %"


def show_reduction(reduction: float | None) -> str:
    """Format a relative reduction of the error: `2.5 %`."""
    return NONE if reduction is None else f"{100 * reduction:.1f} %".replace("-", MINUS)


def show_p(p: float | None) -> str:
    """Format a p-value with three decimals."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
