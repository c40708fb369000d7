"""A biLM that is only read: one for all who read the same files, and one pass for a batch."""

from __future__ import annotations

from typing import Any, TypeAlias, final
from weakref import WeakValueDictionary

import torch

from elmo_framework.bilm.bilm import BiLm, BiLmOutput, BiLmState, framed_mask
from elmo_framework.bilm.files.load import BiLmFiles, read_bilm
from elmo_framework.bilm.files.published import script_check
from elmo_framework.data.scripts import ScriptCheck
from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.word_vector_cache import WordVectorCache
from elmo_framework.nn.part import TensorPart


@final
class FrozenBiLm:
    """Gives the layers of batches, without gradients.

    It is no module on purpose: a module that holds it has none of its parameters, does not save
    them and does not send them to other processes. Its weights never change, so `copy.deepcopy`
    shares it; a pickle holds the weights and the words read so far.

    Args:
        bilm: what is read; its weights must not change any more.
        precision: of its products.
        scripts: warns of text in another script than that of its training; None if that is unknown.
    """

    def __init__(
        self, bilm: BiLm, precision: Precision = "float32", scripts: ScriptCheck | None = None
    ) -> None:
        self.bilm, self.precision, self._scripts = bilm, precision, scripts
        self._device: torch.device | None = None
        self._words = WordVectorCache(bilm.token_encoder)
        self._last: tuple[TextBatch, BiLmOutput] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBiLm:
        """Return the same biLM, since nothing of it changes."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds; what it is loaded into prepares the products again."""
        return {**self.__dict__, "_device": None, "_last": None}

    def forget(self) -> None:
        """Forget the words read so far, so that what follows is the same to the last bit."""
        self._words.forget()

    def read(self, text: TextBatch, state: BiLmState | None = None) -> BiLmOutput:
        """Return the layers of a batch.

        Args:
            text: the batch. Asked for the last one again, it gives what it gave before.
            state: where the rows go on from, instead of zeros; then nothing is remembered.
        """
        if state is not None:
            return self.compute(text, state)
        if self._last is None or self._last[0] is not text:
            self._last = text, self.compute(text)
        return self._last[1]

    def compute(self, text: TextBatch, state: BiLmState | None = None) -> BiLmOutput:
        """Return the layers of a batch and remember nothing."""
        if self._scripts is not None:
            self._scripts.read(text.words)
        bilm = self.prepared(text.mask.device)
        with torch.no_grad():
            return bilm.contextualize(self._words.framed(text), framed_mask(text.mask), state)

    def prepared(self, device: torch.device) -> BiLm:
        """Return the biLM itself, ready to read on a device."""
        if device != self._device:
            self.bilm.to(device)
            for part in self.bilm.modules():
                if isinstance(part, TensorPart):
                    part.freeze(self.precision)
            self._device = device
        return self.bilm


_Key: TypeAlias = tuple[str, Precision, torch.device, torch.dtype]
_held: WeakValueDictionary[_Key, FrozenBiLm] = WeakValueDictionary()


def frozen_bilm(files: BiLmFiles, *, digest: str, precision: Precision = "float32") -> FrozenBiLm:
    """Load a biLM to be read only; one with the same content that is in use is taken instead.

    Args:
        files: of the biLM.
        digest: of their content (`load.reference`).
        precision: of its products.

    Raises:
        DataError: see `read_bilm`.
    """
    key = digest, precision, torch.get_default_device(), torch.get_default_dtype()
    held = _held.get(key)
    if held is None:
        held = _held[key] = FrozenBiLm(read_bilm(files), precision, script_check(files))
    return held
