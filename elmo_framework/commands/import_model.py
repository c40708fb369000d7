"""`elmo import`: the models of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import Command
from elmo_framework.config.arguments import Argument
from elmo_framework.io.outputs import Input, Output


@final
@dataclass(frozen=True, kw_only=True)
class Import(Command):
    """Write the folder of a biLM from a TensorFlow checkpoint of bilm-tf, with its softmax.

    Attributes:
        source: a checkpoint of bilm-tf, such as model.ckpt-935588, or its folder (the --save_dir
            of bilm-tf), of which the latest checkpoint is taken.
        serialization_dir: the folder of the biLM.
        options_file: options.json of bilm-tf; by default the one next to the checkpoint.
        vocab_file: the --vocab_file of bilm-tf; without it the softmax is left out.
    """

    name = "import"
    epilog = """\
examples:
  elmo import bilm_tf/model.ckpt-935588 -s bilm --vocab-file vocabulary.txt
  elmo score bilm sentences.txt

TensorFlow is not needed. With its softmax a biLM can be trained further and gives probabilities:
see docs/pretraining.md. The state of the optimizer is left out.
"""

    source: Annotated[Path, Argument("CHECKPOINT", is_positional=True)]
    serialization_dir: Annotated[Path, Argument("DIR", flags=("-s",))]
    options_file: Annotated[Path | None, Argument("FILE")] = None
    vocab_file: Annotated[Path | None, Argument("FILE")] = None

    def outputs(self) -> Sequence[Output]:
        return [Output(self.serialization_dir, "--serialization-dir")]

    def inputs(self) -> Sequence[Input]:
        named = {
            "CHECKPOINT": self.source if self.source.exists() else None,
            "--options-file": self.options_file,
            "--vocab-file": self.vocab_file,
        }
        return [Input(path, name) for name, path in named.items() if path is not None]

    def run(self) -> int:
        from elmo_framework.bilm.files.import_bilm_tf import import_bilm_tf

        import_bilm_tf(
            self.source,
            self.serialization_dir,
            options_file=self.options_file,
            vocabulary_file=self.vocab_file,
        )
        print(self.serialization_dir)
        return 0
