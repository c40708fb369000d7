"""Vectors of residues and proteins, from a biLM that reads one amino acid as one word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from elmo_framework.api import PretrainedBiLm

from .fasta import Protein

Layers: TypeAlias = Literal["sum", "all", "CNN", "LSTM1", "LSTM2"]
"""SeqVec's choices: the sum of the three layers, all of them one after the other, or one."""

_POOLED_BATCHES = 4
_SINGLE: dict[Layers, int] = {"CNN": 0, "LSTM1": 1, "LSTM2": 2}


class VectorPart(NamedTuple):
    """Vectors of some residues of a protein, in some of their dimensions.

    Attributes:
        protein: the protein; its parts follow each other.
        residues: the places of the residues.
        dims: the place of the dimensions.
        vectors: "residues dims".
        is_last: whether it is the last part of the protein.
    """

    protein: Protein
    residues: slice
    dims: slice
    vectors: NDArray[np.float32]
    is_last: bool


@final
class ProteinEmbedder:
    """Embeds proteins as SeqVec does (Heinzinger et al. 2019), in bounded memory.

    The vector of a residue is the sum of the layers of the biLM, and that of a protein the mean
    over its residues.

    Args:
        bilm: reads one letter as one word, such as SeqVec's.
        layers: what of the layers makes a vector.
        max_residues: the number of residues that are computed at once; a longer protein is
            computed in parts, with the same result within 1e-5.

    Attributes:
        dim: the dimension of a vector.

    Raises:
        ValueError: the biLM does not have the layers, or `max_residues` is below 3.
    """

    def __init__(
        self, bilm: PretrainedBiLm, *, layers: Layers = "sum", max_residues: int = 2048
    ) -> None:
        if layers not in get_args(Layers):
            raise ValueError(f"layers is {layers!r}; choose from {', '.join(get_args(Layers))}")
        if _SINGLE.get(layers, 0) >= bilm.num_layers:
            raise ValueError(f"layers is {layers!r}, but the biLM has {bilm.num_layers} layers")
        if max_residues < 3:
            raise ValueError(f"max_residues is {max_residues}; it must be at least 3")
        self._bilm, self._layers, self._max_residues = bilm, layers, max_residues
        self.dim = bilm.dim * (bilm.num_layers if layers == "all" else 1)

    def residue_vectors(
        self, proteins: Iterable[Protein]
    ) -> Iterator[tuple[Protein, NDArray[np.float32]]]:
        """Yield each protein with the vectors of its residues: (residues, dim)."""
        vectors = np.empty((0, self.dim), np.float32)
        is_first = True
        for part in self.parts(proteins):
            if is_first:
                vectors = np.empty((len(part.protein.residues), self.dim), np.float32)
            vectors[part.residues, part.dims] = part.vectors
            if part.is_last:
                yield part.protein, vectors
            is_first = part.is_last

    def protein_vectors(
        self, proteins: Iterable[Protein]
    ) -> Iterator[tuple[Protein, NDArray[np.float32]]]:
        """Yield each protein with its vector: (dim,)."""
        total = np.zeros(self.dim)
        for part in self.parts(proteins):
            total[part.dims] += part.vectors.sum(axis=0, dtype=np.float64)
            if part.is_last:
                yield part.protein, (total / len(part.protein.residues)).astype(np.float32)
                total = np.zeros(self.dim)

    def parts(self, proteins: Iterable[Protein]) -> Iterator[VectorPart]:
        """Yield the vectors of residues in parts, so that long proteins fit into memory."""
        pool: list[Protein] = []
        num_residues = 0
        for protein in proteins:
            length = len(protein.residues)
            is_long = length + 2 > self._max_residues
            if is_long or num_residues + length > _POOLED_BATCHES * self._max_residues:
                yield from self._of_pool(pool)
                pool, num_residues = [], 0
            if is_long:
                yield from self._of_long(protein)
            else:
                pool.append(protein)
                num_residues += length
        yield from self._of_pool(pool)

    def _of_pool(self, proteins: list[Protein]) -> Iterator[VectorPart]:
        sequences = [list(protein.residues) for protein in proteins]
        layers = self._bilm.embed(sequences, max_tokens=self._max_residues)
        for protein, each in zip(proteins, layers, strict=True):
            residues, dims = map(slice, each.shape[1:])
            yield from self._parts_of(protein, residues, dims, each)

    def _of_long(self, protein: Protein) -> Iterator[VectorPart]:
        # A part has half of the dimensions, or all of them if the layers read both sides.
        num_left = len(protein.residues) * self._bilm.dim
        parts = self._bilm.embed_in_parts(list(protein.residues), max_tokens=self._max_residues)
        for residues, dims, layers in parts:
            num_left -= layers.shape[1] * layers.shape[2]
            yield from self._parts_of(protein, residues, dims, layers, is_last=not num_left)

    def _parts_of(
        self,
        protein: Protein,
        residues: slice,
        dims: slice,
        layers: NDArray[np.float32],
        *,
        is_last: bool = True,
    ) -> Iterator[VectorPart]:
        """Yield one part; with all layers, one for each of them."""
        if self._layers != "all":
            is_sum = self._layers == "sum"
            vectors = layers.sum(axis=0) if is_sum else layers[_SINGLE[self._layers]]
            yield VectorPart(protein, residues, dims, vectors, is_last)
            return
        for index, vectors in enumerate(layers):
            start = index * self._bilm.dim
            place = slice(start + (dims.start or 0), start + dims.stop)
            is_end = is_last and index == len(layers) - 1
            yield VectorPart(protein, residues, place, vectors, is_end)
