"""`elmo convert`: a config of AllenNLP, translated to one of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import ConfigCommand, output_files
from elmo_framework.config.arguments import Argument, Force
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class Convert(ConfigCommand):
    """Translate a config of AllenNLP, 0.8 to 2.10, and write it with comments.

    `elmo train` and `elmo check` accept the config itself, too.

    Attributes:
        config: of AllenNLP: a .jsonnet or .json file.
        output_file: where to write; standard output by default.
        force: overwrite the file.
    """

    name = "convert"
    epilog = """examples:
  elmo convert old.jsonnet --output-file new.jsonnet
  elmo convert old.jsonnet --ext-var NER_TRAIN_DATA_PATH=data/train.txt

A table on standard error names what became of each key: what differs in effect, which defaults of
AllenNLP were added, and what was dropped, with the reason. If a type or a key has no counterpart,
nothing is written, and all of them are listed. External variables and imports are evaluated.
"""

    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False

    def outputs(self) -> Sequence[Output]:
        return output_files({"--output-file": self.output_file}, force=self.force)

    def inputs(self) -> Sequence[Input]:
        return [Input(self.config, "CONFIG")]

    def run(self) -> int:
        from elmo_framework.config import parse
        from elmo_framework.experiment.experiment import Experiment
        from elmo_framework.io.files import write_text

        config = self.read_config()
        translation = config.translation
        if translation is None:
            raise RunError(f"{self.config}: not a config of AllenNLP; `elmo check` checks it")
        parse.parse(Experiment, config.raw, source=config.source)
        if self.output_file is None:
            print(translation.text, end="")
        else:
            write_text(self.output_file, translation.text)
        return 0
