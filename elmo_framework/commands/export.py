"""`elmo export`: a biLM as files that other ELMo programs read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import final

from elmo_framework.commands.command import (
    Command,
    add_include_package,
    add_run_bilm_argument,
    register_components,
)
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import BILM_PARTS, Input, Output


@final
class Export(Command):
    """Writes the biLM of a run as `options.json` and `weights.hdf5`."""

    name = "export"
    help = "write the biLM of a run as options.json and weights.hdf5, for any ELMo program"
    epilog = """\
examples:
  elmo export runs/bilm --output-dir elmo_of_ours
  elmo export runs/ner --output-dir tuned          a biLM trained with its task (requires_grad)
  elmo export runs/bilm --output-dir small_files --dtype float16

what pretraining left beside the biLM, the softmax and its vocabulary, is written too: with them
the biLM can be trained on.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the run and the folder."""
        parser.add_argument(
            "run", metavar="RUN", help="the folder of a run, or of a biLM, or the name of one"
        )
        parser.add_argument(
            "--output-dir", type=Path, required=True, metavar="DIR", help="where the files go"
        )
        parser.add_argument(
            "--dtype",
            choices=("float32", "float16"),
            default="float32",
            help="of the weights: float32 for every ELMo program, float16 for half the size; "
            "%(default)s unless given",
        )
        parser.add_argument(
            "-f", "--force", action="store_true", help="replace the files of a biLM that is there"
        )
        add_run_bilm_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the files that are written to the folder, or removed from it."""
        return [
            Output(arguments.output_dir / name, "--output-dir", updates="biLM")
            for name in BILM_PARTS
        ]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run or the biLM."""
        named = Path(arguments.run)
        is_run = (named / "filled_config.json").is_file()
        source = run_inputs(named, "RUN") if is_run else bilm_inputs(arguments.run, "RUN")
        return [*source, *run_bilm_inputs(arguments.bilms)]

    def run(self, arguments: Namespace) -> int:
        """Write the files and say where they are."""
        import torch

        from elmo_framework.experiment.export import export_bilm

        register_components(arguments.include_package)
        files = export_bilm(
            arguments.run,
            arguments.output_dir,
            dtype=torch.float16 if arguments.dtype == "float16" else torch.float32,
            force=arguments.force,
            packages=arguments.include_package,
            run_bilms=arguments.bilms,
        )
        print(*files, sep="\n")
        return 0
