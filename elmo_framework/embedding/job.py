"""The job of `elmo embed`, whose fields are the arguments of the command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    ComponentConfig,
    Device,
    Force,
    Plugins,
    RunBiLms,
)
from elmo_framework.config.job_part import WHOLE, JobPart, parse_part
from elmo_framework.kernels.precision import Precision
from elmo_framework.layers.pool import Pool

STANDARD_OUTPUT = Path("-")
"""The output path that means standard output, which JSON lines are written to."""

HDF5_SUFFIXES, NPY_SUFFIX = (".hdf5", ".h5"), ".npy"

_TEXT = "text"  # the column of a table

VectorFormat: TypeAlias = Literal["hdf5", "npy", "parquet", "safetensors"]


@dataclass(frozen=True)
class EmbeddingJob:
    """Sentences, the layers of an encoder, and the format of their vectors.

    Attributes:
        bilm: the folder of a biLM, or of its run, or its name: mini, or a published one; or the
            folder of a transformer.
        sentences: text files with one sentence per line; .gz, .bz2, .xz and .zst are decompressed,
            - reads standard input; with --output-dir also tables: .parquet, .arrow and .feather.
        text_column: the column of a table with the sentences: strings, or lists of words (default:
            %(default)s).
        id_column: the column of a table with identifiers, for --format parquet (default: id, if
            there is one).
        output: the output; JSON lines on standard output by default.
        output_dir: a folder of shards instead of one output; each is complete when it appears, and
            a job that is started again computes those that are missing.
        part: with --output-dir: compute shards I, I + N, I + 2N, ... only, with I from 0 to N - 1
            (default: %(default)s).
        layers: all, top, average, the number of a layer (0 is the token encoder), or the mix that a
            run has learned: mixed(RUN), mixed(RUN:EMBEDDER) (default: %(default)s).
        state: the state that a sentence starts from: zeros, or, in a document, that of each
            direction after the sentence that it has read before; a blank line, or the end of a
            file, ends a document (default: %(default)s).
        pool: one vector per sentence: the mean or the maximum over its words, or the vectors of its
            first and its last word, concatenated; zeros for a blank line (default: %(default)s).
        dtype: of the numbers that are written; int8, for shards, has a scale per vector (default:
            %(default)s).
        format: hdf5: one file in the layout of `allennlp elmo`; npy: one array of all words if OUT
            ends with .npy, otherwise a folder with a memory-mapped array and its index; for shards
            also parquet: a row per line with its id, tokens and vectors, and safetensors: the
            arrays of a folder (default: hdf5 for .hdf5 and .h5, otherwise npy).
        forget_sentences: omit sentence_to_index from the HDF5 file; required above a million lines.
        use_sentence_keys: name the datasets of the HDF5 file by their sentences, which must be
            unique; a / in a sentence creates an HDF5 group.
        force: overwrite OUT if it exists.
        resume: resume an interrupted job.
        max_length: of a transformer: the largest number of pieces that are read together, special
            tokens counted; longer sentences are read in overlapping windows (default: what the
            model takes, or the value of the run of a mix).
        sub_token_mode: of a transformer: the vector of a word of several pieces (default: mean, or
            the value of the run of a mix).
        tokenizer: the tokenizer: a registered name, or JSON as in a config (default: %(default)s,
            for tokenized text).
        max_tokens: maximum number of words in a batch, including padding (default: 4096, on a GPU
            16384).
        precision: precision of the computation (default: %(default)s).
        device: where to compute; auto is a GPU if there is one (default: %(default)s).
        run_bilms: the new folder of a biLM that the run was trained with; may be given several
            times.
        packages: import a module that registers components; may be given several times.
    """

    bilm: Annotated[Path | str, Argument("BILM", is_positional=True, parse=str)]
    sentences: Annotated[Sequence[Path], Argument("SENTENCES", is_positional=True)]
    output: Annotated[Path, Argument("OUT", flags=("--output-file",))] = STANDARD_OUTPUT
    text_column: Annotated[str, Argument("NAME")] = _TEXT
    id_column: Annotated[str | None, Argument("NAME")] = None
    output_dir: Annotated[Path | None, Argument("DIR")] = None
    part: Annotated[JobPart, Argument("I/N", parse=parse_part)] = WHOLE
    layers: Annotated[str, Argument("LAYERS")] = "all"
    state: Literal["reset", "document"] = "reset"
    pool: Pool = "none"
    dtype: Literal["float32", "float16", "int8"] = "float32"
    format: VectorFormat | None = None
    forget_sentences: Annotated[bool, Argument(excludes="keys")] = False
    use_sentence_keys: Annotated[bool, Argument(excludes="keys")] = False
    force: Force = False
    resume: bool = False
    max_length: AboveZero | None = None
    sub_token_mode: Literal["first", "last", "mean"] | None = None
    tokenizer: ComponentConfig = "whitespace"
    max_tokens: AboveZero | None = None
    precision: Precision = "float32"
    device: Device = "auto"
    run_bilms: RunBiLms = ()
    packages: Plugins = ()

    @property
    def column_flag(self) -> str:
        """The flag of a column that is named, if there is one."""
        if self.id_column is not None:
            return "--id-column"
        return "" if self.text_column == _TEXT else "--text-column"

    @property
    def suffix(self) -> str:
        """The suffix of the output, in lower case."""
        return self.output.suffix.lower()

    @property
    def file_format(self) -> VectorFormat:
        """The format, which the suffix of the output decides by default."""
        return self.format or ("hdf5" if self.suffix in HDF5_SUFFIXES else "npy")
