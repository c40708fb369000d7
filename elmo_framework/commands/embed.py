"""`elmo embed`: write the vectors of a corpus."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, final

from elmo_framework.commands.command import (
    Command,
    above_zero,
    add_bilm_argument,
    add_device_argument,
    add_include_package,
    add_resume_arguments,
    add_run_bilm_argument,
    component,
    register_components,
)
from elmo_framework.commands.inputs import bilm_inputs, run_bilm_inputs, run_inputs
from elmo_framework.io.outputs import Input, Output

_HDF5_SUFFIXES, _NPY_SUFFIX, _JSON_SUFFIXES = (".hdf5", ".h5"), ".npy", (".json", ".jsonl")


@final
class Embed(Command):
    """Writes the vectors of sentences to a file."""

    name = "embed"
    help = "write the vectors that a biLM gives the words of a corpus"
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

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add BILM, SENTENCES and the options."""
        add_bilm_argument(parser)
        parser.add_argument(
            "sentences",
            type=Path,
            nargs="+",
            metavar="SENTENCES",
            help="text files with one sentence per line; .gz, .bz2, .xz and .zst are decompressed, "
            "- reads standard input",
        )
        parser.add_argument(
            "--output-file",
            type=Path,
            metavar="OUT",
            help="the output; JSON lines on standard output by default",
        )
        _add_result(parser)
        _add_computation(parser)
        add_run_bilm_argument(parser)
        add_include_package(parser)

    def outputs(self, arguments: Namespace) -> Sequence[Output]:
        """Return the file or the folder of the vectors."""
        path: Path | None = arguments.output_file
        if path is None:
            return []
        form = arguments.format or _format(path)
        is_folder = form == "npy" and path.suffix != _NPY_SUFFIX
        return [Output(path, "--output-file", is_folder=is_folder)]

    def inputs(self, arguments: Namespace) -> Sequence[Input]:
        """Return the biLM, the sentences, and the run of a mix."""
        from elmo_framework.embedding.layer_selector import mixed_target

        mixed = mixed_target(arguments.layers)
        return [
            *bilm_inputs(arguments.bilm, "BILM"),
            *(Input(path, "SENTENCES") for path in arguments.sentences),
            *(run_inputs(mixed[0], "--layers") if mixed else ()),
            *run_bilm_inputs(arguments.bilms),
        ]

    def run(self, arguments: Namespace) -> int:
        """Embed the sentences."""
        register_components(arguments.include_package)

        from elmo_framework.embedding.embed import embed
        from elmo_framework.embedding.job import STANDARD_OUTPUT, EmbeddingJob
        from elmo_framework.io.process import keep_freed_memory

        _check_output(arguments)
        keep_freed_memory()
        output = arguments.output_file or STANDARD_OUTPUT
        embed(
            EmbeddingJob(
                arguments.bilm,
                arguments.sentences,
                output,
                layers=arguments.layers,
                dtype=arguments.dtype,
                format=arguments.format or _format(output),
                tokenizer=arguments.tokenizer,
                keeps_sentences=not arguments.forget_sentences,
                uses_sentence_keys=arguments.use_sentence_keys,
                precision=arguments.precision,
                max_tokens=arguments.max_tokens,
                device=arguments.device,
                resume=arguments.resume,
                force=arguments.force,
                packages=arguments.include_package,
                run_bilms=arguments.bilms,
            )
        )
        return 0


def _add_result(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--layers",
        default="all",
        metavar="LAYERS",
        help="all, top, average, the number of a layer (0 is the token encoder), or the mix that a "
        "run has learned: mixed(RUN), mixed(RUN:EMBEDDER) (default: %(default)s)",
    )
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    parser.add_argument(
        "--format",
        choices=("hdf5", "npy"),
        help="hdf5: one file in the layout of `allennlp elmo`; npy: one array of all words if OUT "
        "ends with .npy, otherwise a folder with a memory-mapped array and its index (default: "
        "hdf5 for .hdf5 and .h5, otherwise npy)",
    )
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--forget-sentences",
        action="store_true",
        help="omit sentence_to_index from the HDF5 file; required above a million lines",
    )
    keys.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="name the datasets of the HDF5 file by their sentences, which must be unique; "
        "a / in a sentence creates an HDF5 group",
    )
    add_resume_arguments(parser, result="OUT")


def _add_computation(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tokenizer",
        type=component,
        default="whitespace",
        metavar="NAME",
        help="the tokenizer: a registered name, or JSON as in a config (default: %(default)s, for "
        "tokenized text)",
    )
    parser.add_argument(
        "--max-tokens",
        type=above_zero,
        default=4096,
        metavar="N",
        help="maximum number of words in a batch, including padding (default: %(default)s)",
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "bfloat16", "int8"),
        default="float32",
        help="precision of the computation (default: %(default)s)",
    )
    add_device_argument(parser)


def _check_output(arguments: Namespace) -> None:
    """Raise RunError for file flags without a file, and for a file of JSON lines."""
    from elmo_framework.errors import RunError

    path: Path | None = arguments.output_file
    if path is not None and path.suffix in _JSON_SUFFIXES:
        raise RunError(
            f"--output-file {path}: JSON lines are written to standard output; remove "
            f"--output-file and add > {path}"
        )
    if path is None:
        for flag in ("format", "force", "resume"):
            if getattr(arguments, flag):
                raise RunError(f"--{flag} needs --output-file, such as vectors.hdf5")


def _format(output: Path) -> Literal["hdf5", "npy"]:
    return "hdf5" if output.suffix in _HDF5_SUFFIXES else "npy"
