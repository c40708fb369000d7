"""`elmo export`: write a biLM in the format that other ELMo programs read."""

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

The softmax and its vocabulary are written too if pretraining saved them: with them you can train
the biLM further.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add RUN and the options."""
        parser.add_argument(
            "run", metavar="RUN", help="the folder of a run or a biLM, or the name of a biLM"
        )
        parser.add_argument(
            "--output-dir", type=Path, required=True, metavar="DIR", help="the output folder"
        )
        parser.add_argument(
            "--dtype",
            choices=("float32", "float16"),
            default="float32",
            help="dtype of the weights: float32 for every ELMo program, float16 for half the size "
            "(default: %(default)s)",
        )
        parser.add_argument(
            "-f", "--force", action="store_true", help="overwrite the files of a biLM in DIR"
        )
        add_run_bilm_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the files that are written to the folder or removed from it."""
        return [
            Output(arguments.output_dir / name, "--output-dir", updates="biLM")
            for name in BILM_PARTS
        ]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the run or the biLM."""
        folder = Path(arguments.run)
        is_run = (folder / "filled_config.json").is_file()
        source = run_inputs(folder, "RUN") if is_run else bilm_inputs(arguments.run, "RUN")
        return [*source, *run_bilm_inputs(arguments.bilms)]

    def run(self, arguments: Namespace) -> int:
        """Write the files and print their paths."""
        import torch

        from elmo_framework.experiment.load_run import export_bilm

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
