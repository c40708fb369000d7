"""A biLM as a source of layers: frozen, cached, or trained with the task."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, final

import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import BiLmFiles, read_bilm, reference
from elmo_framework.bilm.files.published import script_check
from elmo_framework.bilm.layer_output import LayerOutput, LayerState, framed_mask
from elmo_framework.data.scripts import ScriptCheck
from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.shared_source import shared_source
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
    """Gives the layers of batches with gradients, from the ids of characters."""

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


def open_layers(
    files: BiLmFiles,
    *,
    requires_grad: bool = False,
    cache: Literal["disk", "memory", "none"] = "none",
    cache_dtype: CacheDtype = "float16",
    precision: Precision = "float32",
) -> LayerSource:
    """Open a biLM.

    A frozen or cached one that is in use is shared by all that open files with the same content.

    Args:
        files: of the biLM.
        requires_grad: whether it is trained with the task; the other options have no effect then.
        cache: where layers are cached.
        cache_dtype: the type of cached numbers.
        precision: of the products of a frozen biLM.

    Raises:
        DataError: a file cannot be read, or the two do not fit.
    """
    if requires_grad:
        return TrainedBiLm(read_bilm(files, requires_grad=True))
    fingerprint = reference(files)
    return shared_source(
        fingerprint,
        lambda: FrozenBiLm(read_bilm(files), precision, script_check(files), fingerprint),
        partial(open_layers, files, precision=precision),
        cache=cache,
        cache_dtype=cache_dtype,
        precision=precision,
    )


def open_frozen(files: BiLmFiles, *, precision: Precision = "float32") -> FrozenBiLm:
    """Open a frozen biLM, for a caller that needs the model itself; see `open_layers`."""
    source = open_layers(files, precision=precision)
    assert isinstance(source, FrozenBiLm)
    return source
