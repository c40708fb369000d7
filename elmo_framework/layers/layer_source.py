"""LayerSource: the interface of everything that gives layers of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import nn

from elmo_framework.bilm.layer_output import LayerOutput, LayerState
from elmo_framework.data.text import Indexer, TextBatch
from elmo_framework.model.part import Reference, Sentences


class LayerSource(ABC):
    """Gives the layers of sentences: frozen, cached or trained with the task.

    A source is not a module, so that frozen weights are in no checkpoint and are not sent to other
    processes. Whoever holds a trained source registers its `module`.

    Args:
        num_layers: of each sentence.
        dim: the dimension of a layer.
        fingerprint: the path and the digest of the files that it was read from; None where it was
            not read from files, or is trained with the task.
        num_frozen_parameters: the size of its weights; 0 where they are trained.
        indexers: turn words into the ids that it reads from `TextBatch.ids`; a frozen source
            reads the words themselves.
        module: the part that is trained with the task; None for a frozen source.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        dim: int,
        fingerprint: Reference | None = None,
        num_frozen_parameters: int = 0,
        indexers: Sequence[Indexer] = (),
        module: nn.Module | None = None,
    ) -> None:
        self.num_layers, self.dim, self.fingerprint = num_layers, dim, fingerprint
        self.num_frozen_parameters = num_frozen_parameters
        self.indexers, self.module = indexers, module
        self._last: tuple[TextBatch, LayerOutput] | None = None

    def layers(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of a batch.

        A source that is not trained remembers the last batch that started from zeros, so that
        several mixes of the same batch cost one pass.

        Args:
            text: the batch.
            state: the initial state of its rows, instead of zeros.
        """
        if state is not None or self.module is not None:
            return self.compute(text, state)
        if self._last is None or self._last[0] is not text:
            self._last = text, self.compute(text)
        return self._last[1]

    @abstractmethod
    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of a batch and remember nothing; see `layers`."""

    def precompute(self, sentences: Sentences, device: torch.device) -> None:
        """Compute the layers of sentences that will be read, where they can be kept.

        Args:
            sentences: returns them, any number of times each; called where layers can be kept.
            device: computes the layers.
        """
        return

    def forget_words(self) -> None:
        """Forget word vectors, so that what follows does not depend on what was read before."""
        return
