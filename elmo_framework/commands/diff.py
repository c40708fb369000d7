"""`elmo diff`: the settings and the weights in which two runs differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

from elmo_framework.commands.command import Command, ResultFormat
from elmo_framework.config.arguments import Argument
from elmo_framework.console import render_table
from elmo_framework.io.outputs import Input

if TYPE_CHECKING:
    from elmo_framework.analysis.run_difference import RunDifference


@final
@dataclass(frozen=True, kw_only=True)
class ShowDifferences(Command):
    """Show the settings and the weights in which two runs differ.

    Attributes:
        first: the folder or the archive of a run, also of one that is not finished.
        second: another one.
    """

    name = "diff"
    epilog = """\
examples:
  elmo diff runs/ner-1 runs/ner-2
  elmo diff runs/ner ner.tar.gz --format json

Settings are those with all defaults. The relative difference of two tensors is the norm of their
difference, divided by the larger of their norms. Equal tensors are counted, not listed.
"""

    first: Annotated[Path, Argument("RUN", is_positional=True)]
    second: Annotated[Path, Argument("RUN2", is_positional=True)]
    format: ResultFormat = "text"

    def inputs(self) -> Sequence[Input]:
        return [Input(self.first, "RUN"), Input(self.second, "RUN2")]

    def run(self) -> int:
        from elmo_framework.analysis.reported_run import short_names
        from elmo_framework.analysis.run_difference import run_difference

        difference = run_difference(self.first, self.second)
        if self.format == "json":
            print(json.dumps(asdict(difference), indent=2, ensure_ascii=False))
        else:
            print(_as_text(difference, short_names([self.first, self.second])))
        return 0


def _as_text(difference: RunDifference, names: Sequence[str]) -> str:
    parts = []
    if difference.settings:
        rows = [[key, *values] for key, values in difference.settings.items()]
        parts.append(render_table(["setting", *names], rows))
    else:
        parts.append("The settings are the same.")
    if difference.weights is None:
        return "\n\n".join([*parts, "One of the runs has no weights yet."])
    if difference.weights:
        rows = [
            [
                each.name,
                *(_shape(shape) for shape in each.shapes),
                "" if each.largest is None else f"{each.largest:.3g}",
                "" if each.relative is None else f"{each.relative:.3g}",
            ]
            for each in difference.weights
        ]
        headers = ["tensor", *names, "largest difference", "relative"]
        parts.append(render_table(headers, rows))
    parts.append(f"equal tensors: {difference.num_equal:,}")
    return "\n\n".join(parts)


def _shape(shape: Sequence[int] | None) -> str:
    return "none" if shape is None else " \N{MULTIPLICATION SIGN} ".join(map(str, shape)) or "1"
