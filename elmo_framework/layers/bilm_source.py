"""A biLM as a source of layers: frozen, or trained with the task."""

from __future__ import annotations

from typing import Any, final

import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.layer_output import LayerOutput, LayerState, framed_mask
from elmo_framework.data.scripts import ScriptCheck
from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.word_vector_cache import WordVectorCache
from elmo_framework.model.part import Reference
from elmo_framework.nn.part import TensorPart


@final
class FrozenBiLm(LayerSource):
    """Gives the layers of batches, without gradients.

    Its weights never change, so `copy.deepcopy` shares it. A pickle contains the weights and the
    words read so far.

    Args:
        bilm: the biLM; its weights must not change any more.
        precision: of its products.
        scripts: warns of text in another script than that of its training; None if that is unknown.
        fingerprint: of the files that it was read from; None for one that was built in the program.
    """

    def __init__(
        self,
        bilm: BiLm,
        precision: Precision = "float32",
        scripts: ScriptCheck | None = None,
        fingerprint: Reference | None = None,
    ) -> None:
        super().__init__(
            num_layers=bilm.num_layers,
            dim=bilm.output_dim,
            fingerprint=fingerprint,
            num_frozen_parameters=sum(parameter.numel() for parameter in bilm.parameters()),
        )
        self.bilm, self.precision, self._scripts = bilm, precision, scripts
        self._device: torch.device | None = None
        self._words = WordVectorCache(bilm.token_encoder)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBiLm:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle; products are prepared again after loading."""
        return {**self.__dict__, "_device": None, "_last": None}

    def forget_words(self) -> None:
        self._words.clear()

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        if self._scripts is not None:
            self._scripts.read(text.words)
        bilm = self.prepared(text.mask.device)
        with torch.no_grad():
            return bilm.contextualize(self._words.framed(text), framed_mask(text.mask), state)

    def prepared(self, device: torch.device) -> BiLm:
        """Return the biLM itself, ready for inference on a device."""
        if device != self._device:
            self.bilm.to(device)
            for part in self.bilm.modules():
                if isinstance(part, TensorPart):
                    part.freeze(self.precision)
            self._device = device
        return self.bilm


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
        output: LayerOutput = self._bilm(text.ids[self.indexers[0].key], state)
        return output
