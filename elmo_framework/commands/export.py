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
    """Write the biLM of a run for any ELMo program, a run or a biLM as ONNX, or a run for AllenNLP.

    A biLM with parts that bilm-tf does not know is written as bilm.json and weights.safetensors.

    Attributes:
        run_or_bilm: the folder or archive of a run, the folder of a biLM, or the name of one.
        output_dir: the output folder, for bilm and onnx.
        output_file: the path of the archive, for allennlp.
        model_format: bilm writes options.json and weights.hdf5; onnx writes a tagger, a classifier
            of texts or of pairs, or a biLM as model.onnx, with a loader that needs only NumPy and
            onnxruntime; allennlp writes a run of a task as the archive model.tar.gz of AllenNLP
            2.10 (default: %(default)s).
        dtype: dtype of the weights: float32; float16, for half the size (bilm only); or int8, for
            a quarter of it (onnx only) (default: %(default)s).
        vocabulary: for onnx: keep the word vectors of the words in FILE, one per line; all by
            default.
        force: overwrite the files of a biLM or of an ONNX model in DIR, or FILE.
    """

    name = "export"
    epilog = """\
examples:
  elmo export runs/bilm --output-dir elmo_of_ours
  elmo export runs/ner --output-dir tuned          a biLM trained with its task (requires_grad)
  elmo export runs/bilm --output-dir small_files --dtype float16
  elmo export runs/ner --format onnx --output-dir ner_onnx
  elmo export mini --format onnx --output-dir mini_onnx --dtype int8
  elmo export runs/ner --format allennlp --output-file model.tar.gz

The softmax and its vocabulary are written too if pretraining saved them: with them you can train
the biLM further. As ONNX, a run of a task is written with its biLM, and a run of a pretraining as
its biLM. For AllenNLP, what it cannot do is an error with all reasons: see
docs/allennlp_details.md.
"""

    run_or_bilm: Annotated[str, Argument("RUN", is_positional=True)]
    output_dir: Annotated[Path | None, Argument("DIR")] = None
    output_file: Annotated[Path | None, Argument("FILE")] = None
    model_format: Annotated[Literal["bilm", "onnx", "allennlp"], Argument(flags=("--format",))] = (
        "bilm"
    )
    dtype: Literal["float32", "float16", "int8"] = "float32"
    vocabulary: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        """Return the files that are written, or removed from the folder."""
        files = [self.output_file] if self.output_file is not None else []
        outputs = [Output(path, "--output-file", force=self.force) for path in files]
        if self.output_dir is None:
            return outputs
        if self.model_format == "onnx":
            paths = (self.output_dir / name for name in ONNX_FILES)
            return [*outputs, *(Output(each, "--output-dir", force=self.force) for each in paths)]
        paths = (self.output_dir / name for name in BILM_PARTS)
        return [*outputs, *(Output(each, "--output-dir", updates="biLM") for each in paths)]

    def inputs(self) -> Sequence[Input]:
        place = as_path(self.run_or_bilm)
        is_run = not isinstance(place, RemotePath) and (place / "filled_config.json").is_file()
        source = run_inputs(place, "RUN") if is_run else bilm_inputs(self.run_or_bilm, "RUN")
        words = [] if self.vocabulary is None else [Input(self.vocabulary, "--vocabulary")]
        return [*source, *run_bilm_inputs(self.run_bilms), *words]

    def run(self) -> int:
        output = self._checked_output()
        register_components(self.packages)
        write = {"bilm": self._bilm, "onnx": self._onnx, "allennlp": self._allennlp}
        print(*write[self.model_format](output), sep="\n")
        return 0

    def _bilm(self, directory: Path) -> Sequence[Path]:
        import torch

        from elmo_framework.experiment.load_run import export_bilm

        return export_bilm(
            self.run_or_bilm,
            directory,
            dtype=torch.float16 if self.dtype == "float16" else torch.float32,
            force=self.force,
            packages=self.packages,
            run_bilms=self.run_bilms,
        )

    def _onnx(self, directory: Path) -> Sequence[Path]:
        from elmo_framework.data.formats.text_files import read_lines
        from elmo_framework.onnx_export.export import export_onnx

        words = None
        if self.vocabulary is not None:
            words = [line.strip() for _, line in read_lines(self.vocabulary)]
        return export_onnx(
            self.run_or_bilm,
            directory,
            is_int8=self.dtype == "int8",
            words=words,
            packages=self.packages,
            bilm=self.run_bilms,
        )

    def _allennlp(self, archive: Path) -> Sequence[Path]:
        from elmo_framework.compat.allennlp.export import export_allennlp

        return [
            export_allennlp(self.run_or_bilm, archive, packages=self.packages, bilm=self.run_bilms)
        ]

    def _checked_output(self) -> Path:
        """Return the output folder or file; raise RunError for an option of another format."""
        others = {"bilm": ("int8",), "onnx": ("float16",), "allennlp": ("int8", "float16")}
        if self.dtype in others[self.model_format]:
            raise RunError(f"--dtype {self.dtype} is not for --format {self.model_format}")
        if self.vocabulary is not None and self.model_format != "onnx":
            raise RunError("--vocabulary is for --format onnx")
        outputs = {"--output-dir": self.output_dir, "--output-file": self.output_file}
        flag = "--output-file" if self.model_format == "allennlp" else "--output-dir"
        if (output := outputs.pop(flag)) is None or any(outputs.values()):
            value = "FILE" if flag == "--output-file" else "DIR"
            rest = "".join(f", without {other}" for other, path in outputs.items() if path)
            raise RunError(f"--format {self.model_format}: pass {flag} {value}{rest}")
        return output
