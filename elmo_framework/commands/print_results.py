"""`elmo print-results`: the metrics of all runs below a folder, as a table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

from elmo_framework.commands.command import Command
from elmo_framework.config.arguments import Argument
from elmo_framework.console import render_table
from elmo_framework.io.outputs import Input


@final
@dataclass(frozen=True, kw_only=True)
class PrintResults(Command):
    """Print the metrics of all runs below a folder as a table.

    Attributes:
        folder: the folder whose runs are found, at any depth.
        keys: a metric, such as best_validation_loss, or a pattern, such as test_*; may be given
            several times. By default the metric that chose the best weights, on validation and
            test data, with the number of updates and the minutes.
        format: format of the table.
    """

    name = "print-results"
    epilog = """\
examples:
  elmo print-results runs
  elmo print-results runs -k 'best_validation_f1-measure-*' -k training_steps
  elmo print-results runs --format csv > runs.csv

Runs that are not finished, and imported runs, have no metrics and are listed at the end. For means
and intervals over seeds, use `elmo study` and `elmo compare`.
"""

    folder: Annotated[Path, Argument("DIR", is_positional=True)]
    keys: Annotated[Sequence[str], Argument("KEY", flags=("-k", "--keys"))] = ()
    format: Literal["text", "csv", "tsv", "json"] = "text"

    def inputs(self) -> Sequence[Input]:
        return [Input(self.folder, "DIR")]

    def run(self) -> int:
        from elmo_framework.analysis.run_table import find_runs, run_table

        table = run_table(find_runs(self.folder), self.keys, folder=self.folder)
        if self.format == "json":
            print(json.dumps(table.rows, indent=2, ensure_ascii=False))
        elif self.format == "text" and table.rows:
            cells = [[_cell(row.get(name)) for name in table.columns] for row in table.rows]
            print(render_table(table.columns, cells))
        elif self.format != "text":
            delimiter = "," if self.format == "csv" else "\t"
            writer = csv.DictWriter(
                sys.stdout, table.columns, delimiter=delimiter, lineterminator="\n"
            )
            writer.writeheader()
            writer.writerows(table.rows)
        for path in table.imported:
            print(f"without metrics: {path}", file=sys.stderr)
        for path in table.unfinished:
            print(f"not finished: {path}", file=sys.stderr)
        return 0


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
