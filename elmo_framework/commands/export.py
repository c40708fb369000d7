"""`elmo export`: write a biLM in the format that other ELMo programs read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import Argument, Force, Plugins, RunBiLms
from elmo_framework.io.outputs import BILM_PARTS, Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write the biLM of a run as options.json and weights.hdf5, for any ELMo program.

    A biLM with parts that bilm-tf does not know is written as bilm.json and weights.safetensors.

    Attributes:
        run_or_bilm: the folder of a run or a biLM, or the name of a biLM.
        output_dir: the output folder.
        dtype: dtype of the weights: float32 for every ELMo program, float16 for half the size
            (default: %(default)s).
        force: overwrite the files of a biLM in DIR.
    """

    name = "export"
    epilog = """\
examples:
  elmo export runs/bilm --output-dir elmo_of_ours
  elmo export runs/ner --output-dir tuned          a biLM trained with its task (requires_grad)
  elmo export runs/bilm --output-dir small_files --dtype float16

The softmax and its vocabulary are written too if pretraining saved them: with them you can train
the biLM further.
"""

    run_or_bilm: Annotated[str, Argument("RUN", is_positional=True)]
    output_dir: Annotated[Path, Argument("DIR")]
    dtype: Literal["float32", "float16"] = "float32"
    force: Force = False
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        """Return the files that are written to the folder or removed from it."""
        return [
            Output(self.output_dir / name, "--output-dir", updates="biLM") for name in BILM_PARTS
        ]

    def inputs(self) -> Sequence[Input]:
        folder = Path(self.run_or_bilm)
        is_run = (folder / "filled_config.json").is_file()
        source = run_inputs(folder, "RUN") if is_run else bilm_inputs(self.run_or_bilm, "RUN")
        return [*source, *run_bilm_inputs(self.run_bilms)]

    def run(self) -> int:
        import torch

        from elmo_framework.experiment.load_run import export_bilm

        register_components(self.packages)
        files = export_bilm(
            self.run_or_bilm,
            self.output_dir,
            dtype=torch.float16 if self.dtype == "float16" else torch.float32,
            force=self.force,
            packages=self.packages,
            run_bilms=self.run_bilms,
        )
        print(*files, sep="\n")
        return 0
