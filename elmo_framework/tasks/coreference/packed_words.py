"""The words of documents in one sequence, without the padding of their sentences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmo_framework.tasks.coreference.example import CoreferenceBatch


@dataclass(frozen=True, slots=True)
class PackedWords:
    """Positions of the words of a batch, and their sentences and speakers by document.

    Attributes:
        places: the position of each word in the flattened padded sentences.
        sizes: number of words of each document.
        sentences: for each document, the row of the sentence of each word.
        numbers: for each document, the position of each word in it.
        speakers: for each document, the number of the speaker of each word.
    """

    places: Int[Tensor, " words"]
    sizes: list[int]
    sentences: tuple[Tensor, ...]
    numbers: tuple[Tensor, ...]
    speakers: tuple[Tensor, ...]

    @classmethod
    def of(cls, batch: CoreferenceBatch) -> PackedWords:
        mask = batch.text.mask
        rows, tokens = mask.nonzero(as_tuple=True)
        sizes = batch.documents[rows].bincount(minlength=len(batch.examples)).tolist()
        return cls(
            places=rows * mask.shape[1] + tokens,
            sizes=sizes,
            sentences=torch.split(rows, sizes),
            numbers=torch.split(batch.offsets[rows] + tokens, sizes),
            speakers=torch.split(batch.speakers[rows, tokens], sizes),
        )

    def take(self, padded: Float[Tensor, "sentences tokens dim"]) -> Float[Tensor, "words dim"]:
        """Return the vectors of the words from those of the padded sentences."""
        return padded.flatten(0, 1).index_select(0, self.places)


def gold_clusters(
    batch: CoreferenceBatch, mentions: Int[Tensor, "mentions 4"], max_width: int
) -> Int[Tensor, "words width"]:
    """Return the number of the cluster of each span, by its first word and its width less one.

    Args:
        batch: the batch of the words.
        mentions: the mentions of the batch; those wider than `max_width` are skipped.
        max_width: maximum number of words of a span.

    Returns:
        0 for a span that is not a mention.
    """
    lengths = batch.text.mask.sum(dim=1)
    firsts = lengths.cumsum(dim=0) - lengths
    grid = mentions.new_zeros(int(lengths.sum()), max_width)
    row, first, last, cluster = mentions[mentions[:, 2] - mentions[:, 1] < max_width].T
    grid[firsts[row] + first, last - first] = cluster
    return grid
