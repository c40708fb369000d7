"""`elmo embed`: write the vectors of a corpus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from elmo_framework.commands.command import Command, register_components
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.config.job_part import WHOLE
from elmo_framework.embedding.job import HDF5_SUFFIXES, NPY_SUFFIX, STANDARD_OUTPUT, EmbeddingJob
from elmo_framework.errors import RunError, hint
from elmo_framework.io.outputs import Input, Output

_SHARD_FORMATS = ("parquet", "safetensors")
_JSON_SUFFIXES = (".json", ".jsonl")
_FILE_SUFFIX = re.compile(r"\.(?!v\d)[a-z][a-z0-9]{1,4}")
"""Looks like the suffix of a file of data, and not like a version in the name of a folder."""


@final
@dataclass(frozen=True)
class Embed(EmbeddingJob, Command):
    """Write the vectors that a biLM or a transformer gives the words of a corpus."""

    name = "embed"
    epilog = """\
examples:
  echo "The dogs bark ." | elmo embed mini - --layers top
  elmo embed runs/bilm news.txt --output-file news.hdf5
  elmo embed runs/bilm shard-*.txt.gz --output-file news --layers top --dtype float16
  elmo embed runs/bilm news.txt --output-file news --layers "mixed(runs/ner)"
  elmo embed models/bert news.txt --output-file news.npy --layers top --pool mean
  elmo embed models/bert news.txt --output-file news.hdf5 --max-length 128 --sub-token-mode first
  elmo embed runs/bilm news-*.txt --output-dir news --part 3/16
  elmo embed mini news-*.txt --output-dir news --layers top --pool mean --format parquet
  torchrun --nproc-per-node 4 -m elmo_framework embed runs/bilm news.txt --output-file news

Each line of the input is a sentence. Line i of all files together, from 0, has the name "i":
  file = h5py.File("news.hdf5"); file["7"][...]          --format hdf5: (layers, words, dim)

  from numpy.lib.format import open_memmap               --format npy: a folder
  vectors, index = (open_memmap(f"news/{name}.npy", mode="r") for name in ("vectors", "index"))
  offset, length = index[7]; vectors[offset : offset + length]         (words, layers, dim)

  numpy.load("news.npy")                                 --output-file news.npy: the words of all
                                                         lines, concatenated
  news/000000-000042/...                                 --output-dir news: one such folder or
                                                         file per shard, in their order
  {"words": [...], "vectors": [...]}                     no --output-file: one JSON line per line
                                                         of the input, vectors as in HDF5
The axis of layers exists only with --layers all; with --pool, the axis of words is absent from
HDF5 and JSON, and of length 1 per line in the index of a folder.
"""

    def outputs(self) -> Sequence[Output]:
        shards = [] if self.output_dir is None else [Output(self.output_dir, "--output-dir")]
        if self.output == STANDARD_OUTPUT:
            return shards
        is_folder = self.file_format == "npy" and self.suffix != NPY_SUFFIX
        return [*shards, Output(self.output, "--output-file", is_folder=is_folder)]

    def inputs(self) -> Sequence[Input]:
        from elmo_framework.embedding.layer_selector import mixed_target

        mixed = mixed_target(self.layers)
        return [
            *bilm_inputs(str(self.bilm), "BILM"),
            *(Input(path, "SENTENCES") for path in self.sentences),
            *(run_inputs(mixed[0], "--layers") if mixed else ()),
            *run_bilm_inputs(self.run_bilms),
        ]

    def run(self) -> int:
        from elmo_framework.io.process import keep_freed_memory, limit_compiled_products

        limit_compiled_products()
        register_components(self.packages)

        from elmo_framework.embedding.embed import embed

        self._check_output()
        keep_freed_memory()
        embed(self)
        return 0

    def _check_output(self) -> None:
        """Raise RunError for file flags without a file, and for a file of JSON lines."""
        if self.output_dir is not None:
            self._check_shards()
            return
        if flag := self._needs_shards():
            raise RunError(f"{flag} needs --output-dir, which writes shards")
        if self.part != WHOLE:
            raise RunError("--part needs --output-dir")
        if self.suffix in _JSON_SUFFIXES:
            raise RunError(
                f"--output-file {self.output}: JSON lines are written to standard output; remove "
                f"--output-file and add > {self.output}"
            )
        if self.output == STANDARD_OUTPUT:
            for flag in ("format", "force", "resume"):
                if getattr(self, flag):
                    raise RunError(f"--{flag} needs --output-file, such as vectors.hdf5")
        self._check_suffix()

    def _check_suffix(self) -> None:
        """Raise RunError for what looks like the suffix of a file, but of no format."""
        suffixes = (*HDF5_SUFFIXES, NPY_SUFFIX)
        is_unknown = self.suffix not in suffixes and _FILE_SUFFIX.fullmatch(self.suffix)
        if self.format is None and is_unknown:
            raise RunError(
                f"--output-file {self.output}: unknown suffix {self.output.suffix!r}; choose from "
                f"{', '.join(suffixes)} and a name without a suffix for a folder, or pass --format."
                f"{hint(self.suffix, suffixes)}"
            )

    def _needs_shards(self) -> str:
        """Return what only shards have, if there is something."""
        from elmo_framework.embedding.shards import is_table

        if self.dtype == "int8":
            return "--dtype int8"
        if self.format in _SHARD_FORMATS:
            return f"--format {self.format}"
        if table := next(filter(is_table, self.sentences), None):
            return f"{table}: a table"
        if self.suffix.removeprefix(".") in _SHARD_FORMATS:
            return f"{self.output.suffix} of --output-file {self.output}"
        return self.column_flag

    def _check_shards(self) -> None:
        """Raise RunError for options that one output has and a folder of shards does not."""
        if self.output != STANDARD_OUTPUT:
            raise RunError("--output-dir and --output-file exclude each other; remove one")
        options = {
            "--force": self.force,
            "--resume": self.resume,
            "--use-sentence-keys": self.use_sentence_keys,
            "--state document": self.state == "document",
        }
        if flag := next((flag for flag, is_set in options.items() if is_set), None):
            reason = {
                "--force": "shards are never overwritten; remove the folder to start over",
                "--resume": "the same command computes the shards that are missing; remove it",
                "--use-sentence-keys": "sentences are unique in one file only",
                "--state document": "a document may continue in the next shard",
            }[flag]
            raise RunError(f"{flag} does not go with --output-dir: {reason}")
