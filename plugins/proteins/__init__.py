"""Vectors of amino acids and proteins, by biLMs such as SeqVec.

Nothing is registered: use `elmo-proteins`, or `ProteinEmbedder` and `read_fasta` from Python.
"""

from .fasta import Protein, read_fasta
from .main import main, write_vectors
from .vectors import ProteinEmbedder, VectorPart

__all__ = ["Protein", "ProteinEmbedder", "VectorPart", "main", "read_fasta", "write_vectors"]
