"""The words of documents one after the other, without the padding of their sentences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmo_framework.tasks.coreference.batch import CoreferenceBatch


@dataclass(frozen=True, slots=True)
class PackedWords:
    """Where the words of a batch stand, and what is known about them, document by document.

    Attributes:
        places: of all words, among all places of the padded sentences.
        sizes: how many words each document has.
        sentences: for each document, the row of the sentence of each word.
        numbers: for each document, which of its words each is.
        speakers: for each document, a number for the speaker of each word.
    """

    places: Int[Tensor, " words"]
    sizes: list[int]
    sentences: tuple[Tensor, ...]
    numbers: tuple[Tensor, ...]
    speakers: tuple[Tensor, ...]

    @classmethod
    def of(cls, batch: CoreferenceBatch) -> PackedWords:
        """Return the words of a batch."""
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
        """Take the vectors of the words out of those of the padded sentences."""
        return padded.flatten(0, 1).index_select(0, self.places)


def gold_clusters(
    batch: CoreferenceBatch, mentions: Int[Tensor, "mentions 4"], max_width: int
) -> Int[Tensor, "words width"]:
    """Return the number of the cluster of each span, by its first word and its width less one.

    Args:
        batch: whose words are meant, one after the other.
        mentions: of the batch; wider ones than `max_width` are left out.
        max_width: how many words a span has at most.

    Returns:
        0 for a span that is no mention.
    """
    lengths = batch.text.mask.sum(dim=1)
    firsts = lengths.cumsum(dim=0) - lengths
    grid = mentions.new_zeros(int(lengths.sum()), max_width)
    row, first, last, cluster = mentions[mentions[:, 2] - mentions[:, 1] < max_width].T
    grid[firsts[row] + first, last - first] = cluster
    return grid
