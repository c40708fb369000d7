"""Write `table.md`, `report.html` and pictures of a study, from its records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from elmo_framework import console
from elmo_framework.analysis.page import render, standalone
from elmo_framework.analysis.statistics import NUM_RESAMPLES
from elmo_framework.io.files import remove_folder, write_text
from elmo_framework.study.report_parts import ReportPart, report_parts
from elmo_framework.study.results import Results
from elmo_framework.study.state import StudyState
from elmo_framework.study.tables import Table, TableCell

_NUM_INTERIM_RESAMPLES = 1_000
_INTERIM_SECONDS, _INTERIM_FACTOR = 10.0, 100.0
"""The least time between two reports of a running study, in seconds and relative to their time."""


def write_results(state: StudyState, *, num_resamples: int = NUM_RESAMPLES) -> list[Path]:
    """Write the tables and pictures of the records that a study has now.

    Args:
        state: of the study.
        num_resamples: number of bootstrap resamples for intervals and p-values.

    Returns:
        The table and the page.

    Raises:
        RunError: a record is damaged.
        DataError: terms of examples are damaged.
    """
    folder = state.folder.path
    title = folder.resolve().name
    parts = list(report_parts(Results.of(state, num_resamples=num_resamples)))
    table, page, pictures = folder / "table.md", folder / "report.html", folder / "pictures"
    with FileLock(folder / ".report.lock"):  # several processes may work on a study
        write_text(table, f"# {title}\n" + "\n".join(_markdown(parts)) + "\n")
        write_text(page, render("study.html", title=title, parts=parts))
        remove_folder(pictures)
        for part in parts:
            if part.picture:
                pictures.mkdir(exist_ok=True)
                write_text(pictures / f"{part.name}.svg", standalone(part.picture))
    return [table, page]


class InterimResults:
    """Writes the results of a study while it runs, so rarely that it takes little of the time."""

    def __init__(self) -> None:
        self._next = 0.0

    def update(self, state: StudyState) -> None:
        """Write what `write_results` writes, with fewer resamples, if it is time.

        An error is only logged: the runs that are being trained do not depend on the results.
        """
        began = time.monotonic()
        if began >= self._next:
            try:
                write_results(state, num_resamples=_NUM_INTERIM_RESAMPLES)
            except Exception as error:  # noqa: BLE001 - of a metric of a plugin, too
                console.info(f"no interim results: {error}")
            seconds = time.monotonic() - began
            self._next = began + max(_INTERIM_SECONDS, _INTERIM_FACTOR * seconds)


def _markdown(parts: Sequence[ReportPart]) -> Iterator[str]:
    for part in parts:
        if part.heading:
            yield f"\n## {part.heading}"
        for paragraph in part.paragraphs:
            yield f"\n{paragraph}"
        for table in part.tables:
            yield ""
            yield from _markdown_table(table)


def _markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table without its column of pictures."""
    table = table.without("")
    yield _line(table.headers)
    columns = range(len(table.headers))
    yield _line(["---" if table.is_text(column) else "---:" for column in columns])
    for row in table.rows:
        yield _line([_markdown_cell(cell) for cell in row])


def _markdown_cell(cell: TableCell) -> str:
    links = ", ".join(f"[{link.text}](<{link.target}>)" for link in cell.links)
    return links + cell.text


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
