"""A biLM that is only read: one for all who read the same files, and one pass for a batch."""

from __future__ import annotations

from typing import TypeAlias, final
from weakref import WeakValueDictionary

import torch

from elmo_framework.bilm.bilm import BiLm, BiLmOutput, BiLmState
from elmo_framework.bilm.load import BiLmFiles, read_bilm
from elmo_framework.data.text import Indexer, TextBatch


@final
class FrozenBiLm:
    """Gives the layers of batches, without gradients.

    It is no module on purpose: a module that holds it has none of its parameters, does not save
    them and does not send them to other processes.

    Args:
        bilm: what is read.
    """

    def __init__(self, bilm: BiLm) -> None:
        self.bilm = bilm
        self._last: tuple[TextBatch, BiLmOutput] | None = None

    @property
    def indexers(self) -> tuple[Indexer, ...]:
        """What turns words into the ids that are read."""
        return (self.bilm.token_encoder.indexer,)

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
        bilm = self.bilm.to(text.mask.device)
        with torch.no_grad():
            output: BiLmOutput = bilm(text.ids[bilm.token_encoder.indexer.key], state)
        return output


_Key: TypeAlias = tuple[str, torch.device, torch.dtype]
_held: WeakValueDictionary[_Key, FrozenBiLm] = WeakValueDictionary()


def frozen_bilm(files: BiLmFiles, *, digest: str) -> FrozenBiLm:
    """Load a biLM to be read only; one with the same content that is in use is taken instead.

    Args:
        files: of the biLM.
        digest: of their content (`load.reference`).

    Raises:
        DataError: see `read_bilm`.
    """
    key = digest, torch.get_default_device(), torch.get_default_dtype()
    held = _held.get(key)
    if held is None:
        held = _held[key] = FrozenBiLm(read_bilm(files))
    return held
