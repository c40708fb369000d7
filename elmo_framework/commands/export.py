"""`elmo export`: write a biLM or a task model in a format that other programs read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import Argument, Force, Plugins, RunBiLms
from elmo_framework.errors import RunError
from elmo_framework.io.outputs import BILM_PARTS, ONNX_FILES, Input, Output
from elmo_framework.io.remote import RemotePath, as_path


@final
@dataclass(frozen=True, kw_only=True)
class Export(Command):
    """Write the biLM of a run for any ELMo program, or a run or a biLM as ONNX.

    A biLM with parts that bilm-tf does not know is written as bilm.json and weights.safetensors.

    Attributes:
        run_or_bilm: the folder or archive of a run, the folder of a biLM, or the name of one.
        output_dir: the output folder.
        model_format: bilm writes options.json and weights.hdf5; onnx writes a tagger, a classifier
            of texts or of pairs, or a biLM as model.onnx, with a loader that needs only NumPy and
            onnxruntime (default: %(default)s).
        dtype: dtype of the weights: float32; float16, for half the size (bilm only); or int8, for
            a quarter of it (onnx only) (default: %(default)s).
        vocabulary: for onnx: keep the word vectors of the words in FILE, one per line; all by
            default.
        force: overwrite the files of a biLM or of an ONNX model in DIR.
    """

    name = "export"
    epilog = """\
examples:
  elmo export runs/bilm --output-dir elmo_of_ours
  elmo export runs/ner --output-dir tuned          a biLM trained with its task (requires_grad)
  elmo export runs/bilm --output-dir small_files --dtype float16
  elmo export runs/ner --format onnx --output-dir ner_onnx
  elmo export mini --format onnx --output-dir mini_onnx --dtype int8

The softmax and its vocabulary are written too if pretraining saved them: with them you can train
the biLM further. As ONNX, a run of a task is written with its biLM, and a run of a pretraining as
its biLM.
"""

    run_or_bilm: Annotated[str, Argument("RUN", is_positional=True)]
    output_dir: Annotated[Path, Argument("DIR")]
    model_format: Annotated[Literal["bilm", "onnx"], Argument(flags=("--format",))] = "bilm"
    dtype: Literal["float32", "float16", "int8"] = "float32"
    vocabulary: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        """Return the files that are written to the folder or removed from it."""
        if self.model_format == "onnx":
            paths = (self.output_dir / name for name in ONNX_FILES)
            return [Output(path, "--output-dir", force=self.force) for path in paths]
        return [
            Output(self.output_dir / name, "--output-dir", updates="biLM") for name in BILM_PARTS
        ]

    def inputs(self) -> Sequence[Input]:
        place = as_path(self.run_or_bilm)
        is_run = not isinstance(place, RemotePath) and (place / "filled_config.json").is_file()
        source = run_inputs(place, "RUN") if is_run else bilm_inputs(self.run_or_bilm, "RUN")
        words = [] if self.vocabulary is None else [Input(self.vocabulary, "--vocabulary")]
        return [*source, *run_bilm_inputs(self.run_bilms), *words]

    def run(self) -> int:
        self._require_fitting_options()
        register_components(self.packages)
        print(*(self._onnx() if self.model_format == "onnx" else self._bilm()), sep="\n")
        return 0

    def _bilm(self) -> Sequence[Path]:
        import torch

        from elmo_framework.experiment.load_run import export_bilm

        return export_bilm(
            self.run_or_bilm,
            self.output_dir,
            dtype=torch.float16 if self.dtype == "float16" else torch.float32,
            force=self.force,
            packages=self.packages,
            run_bilms=self.run_bilms,
        )

    def _onnx(self) -> Sequence[Path]:
        from elmo_framework.data.formats.text_files import read_lines
        from elmo_framework.onnx_export.export import export_onnx

        words = None
        if self.vocabulary is not None:
            words = [line.strip() for _, line in read_lines(self.vocabulary)]
        return export_onnx(
            self.run_or_bilm,
            self.output_dir,
            is_int8=self.dtype == "int8",
            words=words,
            packages=self.packages,
            bilm=self.run_bilms,
        )

    def _require_fitting_options(self) -> None:
        """Raise RunError for an option of the other format."""
        other = {"bilm": "int8", "onnx": "float16"}[self.model_format]
        if self.dtype == other:
            raise RunError(f"--dtype {other} is not for --format {self.model_format}")
        if self.vocabulary is not None and self.model_format != "onnx":
            raise RunError("--vocabulary is for --format onnx")
