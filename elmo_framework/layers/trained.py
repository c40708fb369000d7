"""A biLM that is trained with the task."""

from __future__ import annotations

from typing import final

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.layer_output import LayerOutput, LayerState
from elmo_framework.data.text import TextBatch
from elmo_framework.layers.layer_source import LayerSource


@final
class TrainedBiLm(LayerSource):
    """Gives the layers of batches with gradients, from the ids of characters.

    Args:
        bilm: the biLM; its parameters change in training.
    """

    def __init__(self, bilm: BiLm) -> None:
        super().__init__(
            num_layers=bilm.num_layers,
            dim=bilm.output_dim,
            indexers=[bilm.token_encoder.indexer],
            module=bilm,
        )
        self._bilm = bilm

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of a batch."""
        output: LayerOutput = self._bilm(text.ids[self.indexers[0].key], state)
        return output
