"""`elmo embed`: write the vectors of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    BiLm,
    ComponentConfig,
    Device,
    Force,
    Plugins,
    RunBiLms,
)
from elmo_framework.io.outputs import Input, Output

_HDF5_SUFFIXES, _NPY_SUFFIX, _JSON_SUFFIXES = (".hdf5", ".h5"), ".npy", (".json", ".jsonl")


@final
@dataclass(frozen=True, kw_only=True)
class Embed(Command):
    """Write the vectors that a biLM gives the words of a corpus.

    Attributes:
        sentences: text files with one sentence per line; .gz, .bz2, .xz and .zst are decompressed,
            - reads standard input.
        output_file: the output; JSON lines on standard output by default.
        layers: all, top, average, the number of a layer (0 is the token encoder), or the mix that a
            run has learned: mixed(RUN), mixed(RUN:EMBEDDER) (default: %(default)s).
        format: hdf5: one file in the layout of `allennlp elmo`; npy: one array of all words if OUT
            ends with .npy, otherwise a folder with a memory-mapped array and its index (default:
            hdf5 for .hdf5 and .h5, otherwise npy).
        forget_sentences: omit sentence_to_index from the HDF5 file; required above a million lines.
        use_sentence_keys: name the datasets of the HDF5 file by their sentences, which must be
            unique; a / in a sentence creates an HDF5 group.
        force: overwrite OUT if it exists.
        tokenizer: the tokenizer: a registered name, or JSON as in a config (default: %(default)s,
            for tokenized text).
        max_tokens: maximum number of words in a batch, including padding (default: %(default)s).
        precision: precision of the computation (default: %(default)s).
    """

    name = "embed"
    epilog = """\
examples:
  echo "The dogs bark ." | elmo embed mini - --layers top
  elmo embed runs/bilm news.txt --output-file news.hdf5
  elmo embed runs/bilm shard-*.txt.gz --output-file news --layers top --dtype float16
  elmo embed runs/bilm news.txt --output-file news --layers "mixed(runs/ner)"
  torchrun --nproc-per-node 4 -m elmo_framework embed runs/bilm news.txt --output-file news

Each line of the input is a sentence. Line i of all files together, from 0, has the name "i":
  file = h5py.File("news.hdf5"); file["7"][...]          --format hdf5: (layers, words, dim)

  from numpy.lib.format import open_memmap               --format npy: a folder
  vectors, index = (open_memmap(f"news/{name}.npy", mode="r") for name in ("vectors", "index"))
  offset, length = index[7]; vectors[offset : offset + length]         (words, layers, dim)

  numpy.load("news.npy")                                 --output-file news.npy: the words of all
                                                         lines, concatenated
  {"words": [...], "vectors": [...]}                     no --output-file: one JSON line per line
                                                         of the input, vectors as in HDF5
The axis of layers exists only with --layers all.
"""

    bilm: BiLm
    sentences: Annotated[Sequence[Path], Argument("SENTENCES", is_positional=True)]
    output_file: Annotated[Path | None, Argument("OUT")] = None
    layers: Annotated[str, Argument("LAYERS")] = "all"
    dtype: Literal["float32", "float16"] = "float32"
    format: Literal["hdf5", "npy"] | None = None
    forget_sentences: Annotated[bool, Argument(excludes="keys")] = False
    use_sentence_keys: Annotated[bool, Argument(excludes="keys")] = False
    force: Force = False
    resume: bool = False
    tokenizer: ComponentConfig = "whitespace"
    max_tokens: AboveZero = 4096
    precision: Literal["float32", "bfloat16", "int8"] = "float32"
    device: Device = "auto"
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    def outputs(self) -> Sequence[Output]:
        path = self.output_file
        if path is None:
            return []
        form = self.format or _format(path)
        is_folder = form == "npy" and path.suffix != _NPY_SUFFIX
        return [Output(path, "--output-file", is_folder=is_folder)]

    def inputs(self) -> Sequence[Input]:
        """Return the biLM, the sentences, and the run of a mix."""
        from elmo_framework.embedding.layer_selector import mixed_target

        mixed = mixed_target(self.layers)
        return [
            *bilm_inputs(self.bilm, "BILM"),
            *(Input(path, "SENTENCES") for path in self.sentences),
            *(run_inputs(mixed[0], "--layers") if mixed else ()),
            *run_bilm_inputs(self.run_bilms),
        ]

    def run(self) -> int:
        register_components(self.packages)

        from elmo_framework.embedding.embed import embed
        from elmo_framework.embedding.job import STANDARD_OUTPUT, EmbeddingJob
        from elmo_framework.io.process import keep_freed_memory

        self._check_output()
        keep_freed_memory()
        output = self.output_file or STANDARD_OUTPUT
        embed(
            EmbeddingJob(
                self.bilm,
                self.sentences,
                output,
                layers=self.layers,
                dtype=self.dtype,
                format=self.format or _format(output),
                tokenizer=self.tokenizer,
                keeps_sentences=not self.forget_sentences,
                uses_sentence_keys=self.use_sentence_keys,
                precision=self.precision,
                max_tokens=self.max_tokens,
                device=self.device,
                resume=self.resume,
                force=self.force,
                packages=self.packages,
                run_bilms=self.run_bilms,
            )
        )
        return 0

    def _check_output(self) -> None:
        """Raise RunError for file flags without a file, and for a file of JSON lines."""
        from elmo_framework.errors import RunError

        path = self.output_file
        if path is not None and path.suffix in _JSON_SUFFIXES:
            raise RunError(
                f"--output-file {path}: JSON lines are written to standard output; remove "
                f"--output-file and add > {path}"
            )
        if path is None:
            for flag in ("format", "force", "resume"):
                if getattr(self, flag):
                    raise RunError(f"--{flag} needs --output-file, such as vectors.hdf5")


def _format(output: Path) -> Literal["hdf5", "npy"]:
    return "hdf5" if output.suffix in _HDF5_SUFFIXES else "npy"
