"""`elmo archive`: write a run as one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.commands.share import ShareCommand
from elmo_framework.config.arguments import Argument, Force
from elmo_framework.io.outputs import Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class Archive(ShareCommand):
    """Write a run as one file, with all that predicting needs.

    Attributes:
        run_folder: the folder of a run.
        output_file: the path of the file.
        force: overwrite ARCHIVE.
    """

    name = "archive"
    epilog = """\
examples:
  elmo archive runs/ner ner.tar.gz
  elmo predict ner.tar.gz sentences.txt
  elmo archive runs/ner ner.tar.gz --license cc-by-4.0 --force

elmo evaluate, predict, export and `load` in Python take the file in place of the folder. It needs
neither the run nor the data nor the biLM, and has no paths of your machine. Its README.md is a
model card; to change it, edit README.md in the folder of the run first.
"""

    run_folder: Annotated[Path, Argument("RUN", is_positional=True)]
    output_file: Annotated[Path, Argument("ARCHIVE", is_positional=True)]
    force: Force = False

    def outputs(self) -> Sequence[Output]:
        return [Output(self.output_file, "ARCHIVE", force=self.force)]

    def inputs(self) -> Sequence[Input]:
        return [*run_inputs(self.run_folder, "RUN"), *run_bilm_inputs(self.run_bilms)]

    def run(self) -> int:
        from elmo_framework.experiment.archive import archive_run

        archive_run(self.run_folder, self.output_file, **self.options())
        print(self.output_file)
        return 0
