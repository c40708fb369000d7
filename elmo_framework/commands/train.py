"""`elmo train`: from a configuration to a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, final

from elmo_framework.commands.command import ConfigCommand
from elmo_framework.config.arguments import Argument
from elmo_framework.console import plural
from elmo_framework.io.outputs import Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class Train(ConfigCommand):
    """Train the model of a config: pretrain a biLM, or train a head.

    Attributes:
        serialization_dir: the folder of the run.
        force: remove the run in the folder first.
        recover: resume the run in the folder.
        dry_run: train nothing: read the data, count its words and labels, and list all problems,
            as `elmo check CONFIG --data` does; DIR is not written.
    """

    name = "train"
    epilog = """\
examples:
  elmo train experiments/pretrain/demo.jsonnet -s runs/bilm
  elmo train experiments/demo/elmo.jsonnet -s runs/ner -o trainer.num_epochs=20
  elmo train experiments/demo/elmo.jsonnet -s runs/ner --recover
  torchrun --nproc-per-node 2 -m elmo_framework train CONFIG -s runs/bilm
"""

    serialization_dir: Annotated[Path, Argument("DIR", flags=("-s",))]
    force: Annotated[bool, Argument(flags=("-f",), excludes="start")] = False
    recover: Annotated[bool, Argument(flags=("-r",), excludes="start")] = False
    dry_run: Annotated[bool, Argument(excludes="start")] = False

    def outputs(self) -> Sequence[Output]:
        if self.dry_run:
            return []
        return [Output(self.serialization_dir, "--serialization-dir", is_folder=True)]

    def inputs(self) -> Sequence[Input]:
        """Return the config, which --recover may find in the run; `train` checks what it names."""
        return [] if self.recover else [Input(self.config, "CONFIG")]

    def run(self) -> int:
        from elmo_framework import console
        from elmo_framework.commands.check import Check
        from elmo_framework.experiment.run_directory import RunDirectory
        from elmo_framework.experiment.train import train
        from elmo_framework.io.process import keep_freed_memory

        if self.dry_run:
            return Check(
                config=self.config,
                overrides=self.overrides,
                ext_var=self.ext_var,
                packages=self.packages,
                data=True,
            ).run()
        keep_freed_memory()
        config = self.read_experiment()
        is_first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started
        if self.recover and is_first and not RunDirectory(self.serialization_dir).config.exists():
            console.info(f"{self.serialization_dir}: no run to resume; starting a new one")
        metrics = train(
            config,
            self.serialization_dir,
            packages=self.packages,
            force=self.force,
            recover=self.recover,
        )
        if is_first:
            console.info(_summary(metrics, self.serialization_dir))
        return 0


def _summary(metrics: Mapping[str, Any], directory: Path) -> str:
    tested = [
        f"  {name} {value:.4g}"
        for name, value in metrics.items()
        if name.startswith("test_") and not isinstance(value, Mapping)
    ]
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
