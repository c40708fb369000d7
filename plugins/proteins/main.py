"""The command `elmo-proteins`: FASTA in, a file of vectors out."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import h5py  # type: ignore[import-untyped]
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from elmo_framework import DataError, ElmoFrameworkError, load_bilm
from elmo_framework.io import replacing

from .fasta import Protein, read_fasta
from .vectors import Layers, ProteinEmbedder

_DESCRIPTION = """\
Embed proteins with a biLM of amino acids, such as SeqVec.

The output is an HDF5 file with one dataset for each sequence, named as in the FASTA file:
(residues, dim), or (dim,) with --protein.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 2 for an error that the user can fix."""
    options = _options(arguments)
    try:
        _run(options)
    except (ElmoFrameworkError, ValueError) as error:
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
    written part by part.

    Raises:
        DataError: a name cannot be that of a dataset.
    """
    with replacing(path) as aside, h5py.File(aside, "w") as file:
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
        return file.create_dataset(protein.name, shape, dtype=np.float32)
    except (ValueError, TypeError) as error:
        message = f"{protein.name!r} cannot be the name of a dataset next to the others: {error}"
        raise DataError(message) from error


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
    if output.exists() and not options.force:
        raise DataError("output already exists; pass --force to overwrite", path=output)
    # Reading the file once finds its errors before anything is computed.
    lengths = [len(each.residues) for each in read_fasta(options.fasta, id_field=options.id_field)]
    bilm = load_bilm(options.bilm, device=options.device)
    embedder = ProteinEmbedder(bilm, layers=options.layers, max_residues=options.max_residues)
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
