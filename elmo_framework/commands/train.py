"""`elmo train`: from a configuration to a run."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from elmo_framework.commands.command import Command, add_config_arguments, read_config
from elmo_framework.console import plural
from elmo_framework.io.outputs import Input, Output


@final
class Train(Command):
    """Pretrains a biLM or trains a head: the model of the config decides."""

    name = "train"
    help = "train the model of a config: pretrain a biLM, or train a head"
    epilog = """\
examples:
  elmo train experiments/pretrain/demo.jsonnet -s runs/bilm
  elmo train experiments/demo/elmo.jsonnet -s runs/ner -o trainer.num_epochs=20
  elmo train experiments/demo/elmo.jsonnet -s runs/ner --recover
  torchrun --nproc-per-node 2 -m elmo_framework train CONFIG -s runs/bilm
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the config and the folder of the run."""
        add_config_arguments(parser)
        parser.add_argument(
            "-s",
            "--serialization-dir",
            type=Path,
            required=True,
            metavar="DIR",
            help="the folder that the run is kept in",
        )
        start = parser.add_mutually_exclusive_group()
        start.add_argument(
            "-f", "--force", action="store_true", help="remove the run in the folder first"
        )
        start.add_argument(
            "-r", "--recover", action="store_true", help="resume the run in the folder"
        )

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the folder of the run."""
        return [Output(arguments.serialization_dir, "--serialization-dir", is_folder=True)]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the config, which --recover may find in the run; `train` checks what it names."""
        return [] if arguments.recover else [Input(arguments.config, "CONFIG")]

    def run(self, arguments: Namespace) -> int:
        """Check the config, then train."""
        from elmo_framework import console
        from elmo_framework.experiment.train import train
        from elmo_framework.io.process import keep_freed_memory

        keep_freed_memory()
        config = read_config(arguments)
        metrics = train(
            config,
            arguments.serialization_dir,
            packages=arguments.include_package,
            force=arguments.force,
            recover=arguments.recover,
        )
        if os.environ.get("RANK", "0") == "0":  # of the processes that torchrun started, the first
            console.info(_summary(metrics, arguments.serialization_dir))
        return 0


def _summary(metrics: Mapping[str, Any], directory: Path) -> str:
    """Describe the end of training, and where the results are."""
    tested = [f"  {name} {metrics[name]:.4g}" for name in metrics if name.startswith("test_")]
    steps = plural(metrics["training_steps"], "step")
    seconds = plural(round(metrics["training_duration"]), "second")
    return "\n".join(
        [
            f"{metrics['training_end']}: {steps} in {seconds}, the best at step "
            f"{metrics['best_step']}",
            *tested,
            f"saved to {directory} (metrics: {directory / 'metrics.json'})",
        ]
    )
