"""`elmo schema`: print the JSON Schema of configs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import Command, output_files, register_components
from elmo_framework.config.arguments import Argument, Force, Plugins
from elmo_framework.io.outputs import Output


@final
@dataclass(frozen=True, kw_only=True)
class Schema(Command):
    """Print the JSON Schema of configs, for editors and other programs.

    Attributes:
        study: print the schema of studies instead.
        output_file: the output; printed by default.
        force: overwrite FILE.
    """

    name = "schema"
    epilog = """examples:
  elmo schema > elmo.schema.json
  elmo schema --output-file elmo.schema.json --include-package my_plugin
  elmo schema --study > study.schema.json
"""

    study: bool = False
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return output_files({"--output-file": self.output_file}, force=self.force)

    def run(self) -> int:
        register_components(self.packages)
        from elmo_framework.config.introspect import schema
        from elmo_framework.experiment.experiment import Experiment
        from elmo_framework.io.files import writing
        from elmo_framework.study.study import Study

        family = Study if self.study else Experiment
        text = json.dumps(schema(family), indent=2, ensure_ascii=False) + "\n"
        if self.output_file is None:
            print(text, end="")
        else:
            with writing(self.output_file) as output:
                output.write(text)
        return 0
