"""LayerSource: the interface of everything that gives layers of text."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_framework.bilm.layer_output import NUM_BOUNDARIES, LayerOutput, LayerState
from elmo_framework.data.batch import to_device
from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.data.text import Indexer, TextBatch, collate_text
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.part import Reference, Sentences

_LONGEST_WHOLE = 4096
"""Steps of the longest sentence that is read as a whole. It is fixed, so that the vectors of a
sentence do not depend on the size of the batches."""

_BATCH_TOKENS, _BATCH_TOKENS_OF_ACCELERATORS = 4096, 16384


def batch_tokens(device: torch.device) -> int:
    """Return how many steps a batch has where many sentences are read and nothing is stated.

    A GPU launches the same operations for a large batch as for a small one.
    """
    return _BATCH_TOKENS if uses_cpu_code(device) else _BATCH_TOKENS_OF_ACCELERATORS


class LayerSource(ABC):
    """Gives the layers of sentences: frozen, cached or trained with the task.

    A source is not a module, so that frozen weights are in no checkpoint and are not sent to other
    processes. The owner of a trained source registers its `module`.

    Args:
        num_layers: of each sentence.
        dim: the dimension of a layer.
        fingerprint: the path and the digest of the files that it was read from; None where it was
            not read from files, or is trained with the task.
        num_frozen_parameters: the size of its weights; 0 where they are trained.
        indexers: turn words into the ids that it reads from `TextBatch.ids`; a frozen source
            reads the words themselves.
        module: the part that is trained with the task; None for a frozen source.
        variant: the options that its layers depend on in addition to its files; empty without any.

    Attributes:
        lock: held while a frozen source computes, as its caches are not safe for threads. All
            sources have the same one, so that each can be pickled.
    """

    lock: ClassVar = threading.RLock()

    def __init__(
        self,
        *,
        num_layers: int,
        dim: int,
        fingerprint: Reference | None = None,
        num_frozen_parameters: int = 0,
        indexers: Sequence[Indexer] = (),
        module: nn.Module | None = None,
        variant: str = "",
    ) -> None:
        self.num_layers, self.dim, self.fingerprint = num_layers, dim, fingerprint
        self.num_frozen_parameters = num_frozen_parameters
        self.indexers, self.module, self.variant = indexers, module, variant
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
        last = self._last  # another thread may replace it
        if last is None or last[0] is not text:
            last = self._last = text, self.compute(text)
        return last[1]

    @abstractmethod
    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        """Return the layers of a batch and remember nothing; see `layers`."""

    def read(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        max_tokens: int = _BATCH_TOKENS,
        device: torch.device | None = None,
        reduce: Callable[[Tensor], Tensor] | None = None,
    ) -> Iterator[tuple[int, Float[Tensor, "*layers tokens dim"]]]:
        """Compute the layers of many sentences, in batches of similar length, longest first.

        Each batch starts from zeros. Peak memory grows with `max_tokens` and with the layers of the
        longest sentence, not with the number of sentences.

        Args:
            sentences: the words of each.
            max_tokens: the largest number of steps in a batch, boundaries and padding counted; a
                longer sentence is a batch by itself. So is one of more than 4,096 steps, which is
                read in parts (`read_long`).
            device: computes the layers; the CPU by default.
            reduce: makes less of the layers of a batch, "layers rows steps dim", before they are
                copied to the CPU; it keeps the last three axes.

        Yields:
            The index of a sentence and its layers, on the CPU, in the order in which they are
            computed. They include `<S>` and `</S>`; a sentence without words has neither.

        Raises:
            ValueError: `max_tokens` is not above 0.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; it must be above 0")
        lengths = [len(words) + NUM_BOUNDARIES for words in sentences]
        order = longest_first(range(len(lengths)), lengths)
        num_long = sum(length > _LONGEST_WHOLE for length in lengths)
        alone = ([index] for index in order[:num_long])
        batches = padded_batches(order[num_long:], lengths.__getitem__, max_tokens=max_tokens)
        computed = self._computed(chain(alone, batches), sentences, device)
        if reduce is not None:
            computed = ((batch, reduce(layers)) for batch, layers in computed)
        for batch, layers in _copied(computed):
            for row, index in enumerate(batch):
                yield index, layers[..., row, : lengths[index] if sentences[index] else 0, :]

    def _computed(
        self,
        batches: Iterable[Sequence[int]],
        sentences: Sequence[Sequence[str]],
        device: torch.device | None,
    ) -> Iterator[tuple[Sequence[int], Float[Tensor, "layers rows steps dim"]]]:
        device = device or torch.device("cpu")
        for batch in batches:
            words = [sentences[index] for index in batch]
            if len(words[0]) + NUM_BOUNDARIES > _LONGEST_WHOLE:
                parts = self.read_long(words[0], max_tokens=_LONGEST_WHOLE, device=device)
                yield batch, torch.cat([*parts], dim=1)[:, None]
            else:
                yield batch, self.compute(to_device(collate_text(words), device)).layers

    def read_long(
        self, words: Sequence[str], *, max_tokens: int, device: torch.device
    ) -> Iterator[Float[Tensor, "layers steps dim"]]:
        """Compute the layers of one sentence, in parts if the source can read it in parts.

        Args:
            words: of the sentence; one or more.
            max_tokens: the number of steps in a part.
            device: computes the layers.

        Yields:
            The layers of the next steps, on the CPU; `<S>` and `</S>` are steps, too.
        """
        text = to_device(collate_text([words]), device)
        yield self.compute(text).layers[:, 0].cpu()

    def precompute(self, sentences: Sentences, device: torch.device) -> None:
        """Compute the layers of sentences that will be read, where they can be kept.

        Args:
            sentences: returns them, any number of times each; called where layers can be kept.
            device: computes the layers.
        """
        return

    def read_ahead(self, text: TextBatch) -> TextBatch:
        """Return a batch with the layers that are kept for it, read before it is moved.

        A thread may call it while the model computes.
        """
        return text

    def layer_parameters(self) -> Sequence[Sequence[nn.Parameter]]:
        """Return the trained parameters by layer, the bottom one first; none of a frozen source."""
        return ()

    def forget_words(self) -> None:
        """Forget word vectors, so that what follows does not depend on what was read before."""
        return


def _copied(
    batches: Iterable[tuple[Sequence[int], Tensor]],
) -> Iterator[tuple[Sequence[int], Tensor]]:
    """Copy layers to the CPU; a GPU computes a batch while the one before is copied and used."""
    before = None
    for batch, layers in batches:
        if not layers.is_cuda:
            yield batch, layers.cpu()
            continue
        copy = torch.empty(layers.shape, dtype=layers.dtype, pin_memory=True)
        copy.copy_(layers, non_blocking=True)
        ready = torch.cuda.current_stream(layers.device).record_event()
        if before is not None:
            yield _when_ready(*before)
        before = batch, copy, ready
    if before is not None:
        yield _when_ready(*before)


def _when_ready(
    batch: Sequence[int], layers: Tensor, ready: torch.cuda.Event
) -> tuple[Sequence[int], Tensor]:
    ready.synchronize()
    return batch, layers
