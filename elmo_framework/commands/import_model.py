"""`elmo import`: the models of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.config.arguments import Argument, Force, Plugins
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import Input, Output, folder_kinds

_ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")
"""Suffixes of archives; such a file is not a checkpoint, even if it is damaged."""


@final
@dataclass(frozen=True, kw_only=True)
class Import(Command):
    """Make a run of a trained model of AllenNLP, or a biLM of a checkpoint of bilm-tf.

    Attributes:
        source: an archive of AllenNLP (model.tar.gz) or its serialization directory; or a
            checkpoint of bilm-tf, such as model.ckpt-935588, or its folder (the --save_dir of
            bilm-tf), of which the latest checkpoint is taken.
        serialization_dir: the folder of the run or the biLM.
        bilm: the folder or the name of the biLM that the archive reads; by default its files are at
            the paths in its config.
        overrides: change the translated config of an archive: dotted.key=VALUE, or a JSON object;
            may be given several times.
        force: remove the run in the folder.
        options_file: options.json of bilm-tf; by default the one next to the checkpoint.
        vocab_file: the --vocab_file of bilm-tf; without it the softmax is left out.
    """

    name = "import"
    epilog = """\
examples:
  elmo import model.tar.gz -s runs/ner --bilm original
  elmo import model.tar.gz -s runs/ner -o model.embedder.token_embedders.elmo.state=carry
  elmo evaluate runs/ner test.txt
  elmo import bilm_tf/model.ckpt-935588 -s bilm --vocab-file vocabulary.txt
  elmo score bilm sentences.txt

The run of an archive has its vocabulary and its weights; a table names what differs in effect:
see docs/allennlp_details.md. Nothing in an archive is executed.

For a checkpoint TensorFlow is not needed. With its softmax a biLM can be trained further and gives
probabilities: see docs/pretraining.md. The state of the optimizer is left out.
"""

    source: Annotated[Path, Argument("SOURCE", is_positional=True)]
    serialization_dir: Annotated[Path, Argument("DIR", flags=("-s",))]
    bilm: Annotated[str | None, Argument("BILM")] = None
    overrides: Annotated[Sequence[str], Argument("KEY=VALUE", flags=("-o",))] = ()
    force: Force = False
    options_file: Annotated[Path | None, Argument("FILE")] = None
    vocab_file: Annotated[Path | None, Argument("FILE")] = None
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        return [Output(self.serialization_dir, "--serialization-dir")]

    def inputs(self) -> Sequence[Input]:
        named = {
            "SOURCE": self.source,
            "--options-file": self.options_file,
            "--vocab-file": self.vocab_file,
        }
        return [Input(path, name) for name, path in named.items() if path is not None]

    def run(self) -> int:
        import tarfile

        from elmo_framework.compat.allennlp.recognize import serialized_files
        from elmo_framework.io.archives import is_archive

        is_foreign = bool(serialized_files(self.source))
        own = "archive" if is_archive(self.source) else next(folder_kinds(self.source), None)
        if own is not None and not is_foreign and not (self.source / "checkpoint").exists():
            raise RunError(
                f"{self.source}: this {own} needs no import; pass it to the other commands as it is"
            )
        is_tar = self.source.is_file() and (
            tarfile.is_tarfile(self.source) or self.source.name.endswith(_ARCHIVE_SUFFIXES)
        )
        if is_tar or is_foreign:
            self._import_archive()
        else:
            self._import_checkpoint()
        print(self.serialization_dir)
        return 0

    def _import_archive(self) -> None:
        from elmo_framework import console
        from elmo_framework.compat.allennlp.archive import import_archive

        if self.options_file is not None or self.vocab_file is not None:
            raise RunError("--options-file and --vocab-file are for checkpoints of bilm-tf")
        register_components(self.packages)
        translation = import_archive(
            self.source,
            self.serialization_dir,
            bilm=self.bilm,
            overrides=self.overrides,
            force=self.force,
        )
        console.info(f"{self.source}: {translation.summary}")

    def _import_checkpoint(self) -> None:
        from elmo_framework.bilm.files.import_bilm_tf import import_bilm_tf

        if self.bilm is not None or self.force or self.overrides:
            raise RunError("--bilm, --overrides and --force are for archives of AllenNLP")
        import_bilm_tf(
            self.source,
            self.serialization_dir,
            options_file=self.options_file,
            vocabulary_file=self.vocab_file,
        )
