"""A biLM as a source of layers: frozen, cached, or trained with the task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, final, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.bilm.bilm import BiLm, with_boundaries
from elmo_framework.bilm.context_layers import Direction, State
from elmo_framework.bilm.files.load import BiLmFiles, read_bilm, reference
from elmo_framework.bilm.files.published import script_check
from elmo_framework.bilm.layer_output import LayerOutput, LayerState, framed_mask
from elmo_framework.data.characters import BEGIN_SENTENCE, END_SENTENCE, PADDING_ID
from elmo_framework.data.scripts import ScriptCheck
from elmo_framework.data.text import TextBatch
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.shared_source import shared_source
from elmo_framework.layers.word_vector_cache import WordVectorCache
from elmo_framework.model.part import Reference
from elmo_framework.nn.overlapping_windows import windows
from elmo_framework.nn.part import freeze_parts


class LayerPart(NamedTuple):
    """The layers of some words of a sentence, in one direction.

    Attributes:
        words: their positions in the sentence.
        dims: the dimensions of the direction in a layer.
        layers: "layers words dims".
    """

    words: slice
    dims: slice
    layers: Float[Tensor, "layers words dims"]


@final
class FrozenBiLm(LayerSource):
    """Gives the layers of batches, without gradients.

    Weights that were read from files never change, so `copy.deepcopy` shares it. A pickle contains
    the weights and the words read so far.

    Args:
        bilm: the biLM; if it was built in the program and its weights change, it is prepared again.
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
        self._watched = list(bilm.parameters()) if fingerprint is None else []
        self._versions: list[tuple[int, torch.dtype]] = []
        self._words = WordVectorCache(bilm.token_encoder)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBiLm:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle; products are prepared again after loading."""
        return {**self.__dict__, "_device": None, "_last": None}

    def forget_words(self) -> None:
        self._words.clear()

    def layers(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        if self._versions != self._current_versions():
            self._last = None
        return super().layers(text, state)

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        with self.lock, torch.no_grad():
            if self._scripts is not None:
                self._scripts.read(text.words)
            bilm = self.prepared(text.mask.device)
            mask = framed_mask(text.mask_on_cpu)
            return bilm.contextualize(self._words.framed(text), mask, state)

    def read_ids(
        self, ids: Int[Tensor, "batch tokens characters"], state: LayerState | None = None
    ) -> LayerOutput:
        """Return the layers of words that are given by the ids of their characters.

        Args:
            ids: see `BiLm.forward`.
            state: the initial state of its rows, instead of zeros.
        """
        with self.lock, torch.no_grad():
            bilm = self.prepared(ids.device)
            if not uses_cpu_code(ids):  # to look words up, the CPU would wait for the ids
                output: LayerOutput = bilm(ids, state)
                return output
            framed = with_boundaries(ids, bilm.token_encoder.indexer)
            mask = (framed != PADDING_ID).any(dim=2)
            return bilm.contextualize(self._words.of_ids(framed), mask, state)

    def read_in_parts(
        self, words: Sequence[str], *, max_tokens: int = 4096, device: torch.device
    ) -> Iterator[LayerPart]:
        """Compute the layers of one sentence of any length in bounded memory.

        Each direction reads the parts in its own order and carries its state from part to part,
        so the layers are those of the whole sentence.

        Args:
            words: of the sentence.
            max_tokens: the number of words in a part, boundaries counted.
            device: computes the layers.
        """
        if self.bilm.context_layers.is_bidirectional:
            yield from self._word_parts(words, max_tokens=max_tokens, device=device)
            return
        if self._scripts is not None:
            self._scripts.read([words])
        steps = (BEGIN_SENTENCE, *words, END_SENTENCE) if words else ()
        starts = range(0, len(steps), max_tokens)
        for direction in get_args(Direction):
            state = None
            for start in starts if direction == "forward" else reversed(starts):
                part = steps[start : start + max_tokens]
                layers, state = self._read_part(part, direction, state, device)
                # Places of steps are one higher than those of words, which have no boundaries.
                first, end = max(start, 1), min(start + len(part), len(steps) - 1)
                if first < end:
                    inner = layers[:, first - start : end - start]
                    yield LayerPart(slice(first - 1, end - 1), self._half(direction), inner.cpu())

    def read_long(
        self, words: Sequence[str], *, max_tokens: int, device: torch.device
    ) -> Iterator[Float[Tensor, "layers steps dim"]]:
        """Compute the layers of one sentence of any length in bounded memory, from left to right.

        The backward direction reads all parts twice, except for the first: from the end, to know
        the state that each part starts from, and then each part with the forward direction.
        """
        context_layers = self.bilm.context_layers
        if context_layers.is_bidirectional and context_layers.window_size is None:
            yield from super().read_long(words, max_tokens=max_tokens, device=device)
            return
        if self._scripts is not None:
            self._scripts.read([words])
        steps = (BEGIN_SENTENCE, *words, END_SENTENCE)
        if context_layers.window_size is not None:
            yield from self._read_windows(steps, context_layers.window_size, device)
            return
        parts = [steps[at : at + max_tokens] for at in range(0, len(steps), max_tokens)]
        starts: list[State | None] = [None]
        for part in parts[:0:-1]:
            starts.append(self._read_part(part, "backward", starts[-1], device)[1])
        state = None
        for part, start in zip(parts, reversed(starts), strict=True):
            forward, state = self._read_part(part, "forward", state, device)
            backward, _ = self._read_part(part, "backward", start, device)
            yield torch.cat([forward, backward], dim=2).cpu()

    def _read_windows(
        self, steps: Sequence[str], size: int, device: torch.device
    ) -> Iterator[Float[Tensor, "layers steps dim"]]:
        for window in windows(len(steps), size):
            part = steps[window.start : window.end]
            layers, _ = self._read_part(part, "forward", None, device)
            yield layers[:, window.first - window.start : window.last - window.start].cpu()

    def _word_parts(
        self, words: Sequence[str], *, max_tokens: int, device: torch.device
    ) -> Iterator[LayerPart]:
        """Yield the parts of `read_long` without boundaries, each with all dimensions."""
        start = -1  # `<S>` is not a word
        for layers in self.read_long(words, max_tokens=max_tokens, device=device) if words else ():
            first, end = max(start, 0), min(start + layers.shape[1], len(words))
            if first < end:
                inner = layers[:, first - start : end - start]
                yield LayerPart(slice(first, end), slice(0, self.dim), inner)
            start += layers.shape[1]

    def _half(self, direction: Direction) -> slice:
        half = self.dim // 2
        return slice(0, half) if direction == "forward" else slice(half, self.dim)

    def _read_part(
        self,
        words: Sequence[str],
        direction: Direction,
        state: State | None,
        device: torch.device,
    ) -> tuple[Float[Tensor, "layers words half"], State]:
        """Return the layers of one direction, in the order of the words, and its state.

        Layers that read both sides of a word are all of one direction.
        """
        is_backward = direction == "backward"
        with self.lock, torch.no_grad():
            bilm = self.prepared(device)
            vectors = self._words.vectors(words, device)
            inputs = (vectors.flip(0) if is_backward else vectors)[None]
            mask = torch.ones(inputs.shape[:2], dtype=torch.bool, device=device)
            output = bilm.context_layers.read(inputs, mask, direction=direction, state=state)
        layers = torch.cat([inputs[None], output.layers])[:, 0]
        return layers.flip(1) if is_backward else layers, output.state

    def prepared(self, device: torch.device) -> BiLm:
        """Return the biLM itself, ready for inference on a device."""
        versions = self._current_versions()
        if self._versions not in ([], versions):
            self._words.clear()
        if device != self._device or versions != self._versions:
            self.bilm.to(device)
            bilm = self.bilm
            # int8 would cost half of the precision for vectors that are computed once per word.
            of_words: Precision = "bfloat16" if self.precision == "int8" else self.precision
            freeze_parts(bilm.token_encoder, of_words)
            freeze_parts(bilm.context_layers, self.precision)
            self._device, self._versions = device, self._current_versions()
        return self.bilm

    @property
    def version(self) -> object:
        """What `prepared` found: another value after the weights of such a biLM have changed."""
        return self._versions

    def _current_versions(self) -> list[tuple[int, torch.dtype]]:
        """Return what changes with the weights of a biLM that was built in the program."""
        return [(0 if each.is_inference() else each._version, each.dtype) for each in self._watched]


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

    def layer_parameters(self) -> Sequence[Sequence[nn.Parameter]]:
        return self._bilm.layer_parameters()


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
