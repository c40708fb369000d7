"""`elmo schema`: print the JSON Schema of configs."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import final

from elmo_framework.commands.command import (
    Command,
    add_force_argument,
    add_include_package,
    output_files,
    register_components,
)
from elmo_framework.io.outputs import Output


@final
class Schema(Command):
    """Prints the JSON Schema of configs, with the registered components."""

    name = "schema"
    help = "print the JSON Schema of configs, for editors and other programs"
    epilog = """examples:
  elmo schema > elmo.schema.json
  elmo schema --output-file elmo.schema.json --include-package my_plugin
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--output-file", type=Path, metavar="FILE", help="the output; printed by default"
        )
        add_force_argument(parser, result="FILE")
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file of the schema."""
        return output_files(arguments, "--output-file")

    def run(self, arguments: Namespace) -> int:
        """Write or print the schema."""
        register_components(arguments.include_package)
        from elmo_framework.config.introspect import schema
        from elmo_framework.experiment.experiment import Experiment
        from elmo_framework.io.files import writing

        written = json.dumps(schema(Experiment), indent=2, ensure_ascii=False) + "\n"
        if arguments.output_file is None:
            print(written, end="")
        else:
            with writing(arguments.output_file) as output:
                output.write(written)
        return 0
