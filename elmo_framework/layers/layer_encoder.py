"""Layers of many sentences, computed in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_framework.bilm.layer_output import NUM_BOUNDARIES
from elmo_framework.data.batch import to_device
from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.data.text import collate_text
from elmo_framework.layers.layer_source import LayerSource


class SentenceLayers(NamedTuple):
    """The layers of one sentence.

    Attributes:
        sentence: its index among those that were asked for.
        layers: "layers tokens+2 dim", `<S>` first and `</S>` last; a sentence without words has
            no boundaries either.
    """

    sentence: int
    layers: Float[Tensor, "layers tokens dim"]

    def without_boundaries(self) -> Float[Tensor, "layers words dim"]:
        """Return the layers of the words alone."""
        return self.layers[:, 1:-1]


@final
class LayerEncoder:
    """Reads sentences in batches that are as large as the memory allows, longest first.

    Each batch starts from zeros. Peak memory grows with `max_tokens` and with the longest
    sentence, not with the number of sentences.

    Args:
        source: of the layers.
        max_tokens: the largest number of steps in a batch, boundaries and padding counted; a
            longer sentence is a batch by itself.
        device: computes the layers.
    """

    def __init__(
        self, source: LayerSource, *, max_tokens: int = 4096, device: torch.device | None = None
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; it must be above 0")
        self.source, self._max_tokens = source, max_tokens
        self._device = device or torch.device("cpu")

    def read(self, sentences: Sequence[Sequence[str]]) -> Iterator[SentenceLayers]:
        """Yield the layers of each sentence, in the order in which they are computed."""
        lengths = [len(words) + NUM_BOUNDARIES for words in sentences]
        order = longest_first(range(len(lengths)), lengths)
        for batch in padded_batches(order, lengths.__getitem__, max_tokens=self._max_tokens):
            text = collate_text([sentences[index] for index in batch])
            layers = self.source.compute(to_device(text, self._device)).layers.cpu()
            for row, index in enumerate(batch):
                num_steps = lengths[index] if sentences[index] else 0
                yield SentenceLayers(index, layers[:, row, :num_steps])
