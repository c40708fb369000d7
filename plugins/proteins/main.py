"""The command `elmo-proteins`: FASTA in, a file of vectors out."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import h5py  # type: ignore[import-untyped]
import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from elmo_framework import DataError, ElmoFrameworkError, RunError, load_bilm
from elmo_framework.bilm.files import resolve_bilm
from elmo_framework.io import replacing

from .fasta import Protein, read_fasta
from .vectors import Layers, ProteinEmbedder

_DESCRIPTION = """\
Embed proteins with a biLM of amino acids, such as SeqVec.

The output is an HDF5 file with one dataset for each sequence, named as in the FASTA file, with _
for /: (residues, dim), or (dim,) with --protein.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 2 for an error that the user can fix."""
    options = _options(arguments)
    try:
        _run(options)
    except (ElmoFrameworkError, ValueError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        return 130
    return 0


def write_vectors(
    embedder: ProteinEmbedder, proteins: Iterator[Protein], path: Path, *, per_protein: bool
) -> None:
    """Write the vectors of residues, or of proteins, to an HDF5 file.

    It is written aside and renamed, so that a file at `path` is complete. Long proteins are
    written part by part. A dataset has the name of its protein, with `_` for `/`.

    Raises:
        DataError: a name cannot be that of a dataset.
        OSError: the file cannot be written.
    """
    # Given a path, HDF5 crashes when the disk is full; a file of Python raises OSError.
    with replacing(path) as aside, aside.open("w+b") as opened, h5py.File(opened, "w") as file:
        if per_protein:
            for protein, vector in embedder.protein_vectors(proteins):
                _create(file, protein, (embedder.dim,))[:] = vector
            return
        dataset = None
        for part in embedder.parts(proteins):
            if dataset is None:
                dataset = _create(file, part.protein, (len(part.protein.residues), embedder.dim))
            dataset[part.residues, part.dims] = part.vectors
            dataset = None if part.is_last else dataset


def _create(file: h5py.File, protein: Protein, shape: tuple[int, ...]) -> h5py.Dataset:
    try:
        return file.create_dataset(_dataset_name(protein.name), shape, dtype=np.float32)
    except (ValueError, TypeError) as error:
        message = f"{protein.name!r} cannot be the name of a dataset next to the others: {error}"
        raise DataError(message) from error


def _dataset_name(name: str) -> str:
    """Return the name of the dataset of a protein: `/` would put it into a group."""
    return name.replace("/", "_")


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        "elmo-proteins", description=_DESCRIPTION, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("bilm", help="folder with options.json and weights.hdf5")
    parser.add_argument("fasta", type=Path, help="FASTA file, may be compressed")
    parser.add_argument("--output-file", type=Path, required=True, help="HDF5 file to write")
    parser.add_argument(
        "--protein", action="store_true", help="one vector for each protein: the mean of residues"
    )
    parser.add_argument("--layers", choices=get_args(Layers), default="sum")
    parser.add_argument(
        "--id-field", type=int, help="field of the header that is the name, from 0, between '|'"
    )
    parser.add_argument(
        "--max-residues", type=int, default=2048, help="number of residues computed at once"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--force", action="store_true", help="overwrite the output file")
    return parser.parse_args(arguments)


def _run(options: Namespace) -> None:
    output = options.output_file
    _check_output(output, force=options.force)
    _check_device(options.device)
    lengths = _lengths(options.fasta, options.id_field)
    _check_overwritten(output, options.fasta, options.bilm)
    bilm = load_bilm(options.bilm, device=options.device)
    embedder = ProteinEmbedder(bilm, layers=options.layers, max_residues=options.max_residues)
    num_vectors = len(lengths) if options.protein else sum(lengths)
    _check_space(output, num_vectors * embedder.dim * np.dtype(np.float32).itemsize)
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{len(lengths)} proteins", total=sum(lengths))

        def proteins() -> Iterator[Protein]:
            done = 0
            for protein in read_fasta(options.fasta, id_field=options.id_field):
                progress.update(task, completed=done)
                yield protein
                done += len(protein.residues)
            progress.update(task, completed=done)

        write_vectors(embedder, proteins(), output, per_protein=options.protein)
    sys.stderr.write(f"written: {output}\n")


def _check_output(output: Path, *, force: bool) -> None:
    """Raise DataError if the output cannot be written, before hours of work."""
    if output.exists() and not output.is_file():
        raise DataError("not a file; --output-file names the HDF5 file to write", path=output)
    if output.exists() and not force:
        raise DataError("output already exists; pass --force to overwrite", path=output)
    if not output.parent.is_dir():
        message = "not a folder; create it, or choose another --output-file"
        raise DataError(message, path=output.parent)
    if not os.access(output.parent, os.W_OK):
        message = "you may not write into this folder; choose another --output-file"
        raise DataError(message, path=output.parent)


def _check_space(output: Path, num_bytes: int) -> None:
    """Raise DataError if the disk is too small for the vectors."""
    free = shutil.disk_usage(output.parent).free
    if num_bytes > free:
        message = f"the vectors need {num_bytes:,} bytes, and the disk has {free:,}"
        raise DataError(f"{message}; choose another --output-file", path=output)


def _check_device(name: str) -> None:
    """Raise RunError if torch cannot compute on a device."""
    if name == "auto":
        return
    try:
        torch.zeros(1, device=name).tolist()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        message = f"--device: cannot use {name!r} ({reason}); choose auto, cpu or cuda"
        raise RunError(message) from error


def _check_overwritten(output: Path, fasta: Path, bilm: str) -> None:
    """Raise DataError if the output would replace an input."""
    files = resolve_bilm(bilm)
    of_bilm = (files.options, files.weights, *files.of_token_encoder)
    for path in (fasta, Path(bilm), *of_bilm, files.softmax, files.vocabulary):
        if output.exists() and path.exists() and output.samefile(path):
            message = "--output-file is also an input; choose another file"
            raise DataError(message, path=output)


def _lengths(fasta: Path, id_field: int | None) -> list[int]:
    """Return the number of residues of each sequence, for the progress bar.

    This first reading finds the errors of the file before anything is computed.

    Raises:
        DataError: see `read_fasta`; the file cannot be read twice; a name cannot be that of a
            dataset, or two are that of one.
    """
    if fasta.exists() and not fasta.is_file():
        message = "not a regular file; it is read twice, so save the output of a pipe to a file"
        raise DataError(message, path=fasta)
    lengths = []
    names: dict[str, str] = {}  # by dataset
    for protein in read_fasta(fasta, id_field=id_field):
        dataset = _dataset_name(protein.name)
        if dataset == "." or "\0" in dataset:
            raise DataError(f"{protein.name!r} cannot be the name of a dataset", path=fasta)
        other = names.setdefault(dataset, protein.name)
        if other != protein.name:
            message = f"{other!r} and {protein.name!r} would be one dataset {dataset!r}; rename one"
            raise DataError(message, path=fasta)
        lengths.append(len(protein.residues))
    return lengths
