"""A transformer as a source of layers: frozen, cached, or trained with the task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_framework.bilm.layer_output import NUM_BOUNDARIES, LayerOutput, LayerState, framed_mask
from elmo_framework.console import plural
from elmo_framework.data.sentences import longest_first, padded_batches
from elmo_framework.data.text import TextBatch
from elmo_framework.errors import DataError
from elmo_framework.kernels.backend import no_autocast
from elmo_framework.kernels.product import Precision
from elmo_framework.layers.cache.cached_layers import CacheDtype
from elmo_framework.layers.layer_source import LayerSource
from elmo_framework.layers.shared_source import shared_source
from elmo_framework.layers.transformer_files import (
    read_encoder,
    read_tokenizer,
    transformer_reference,
)
from elmo_framework.layers.word_pieces import (
    SubTokenMode,
    pool_pieces,
    special_tokens,
    tokenize,
)
from elmo_framework.model.part import Reference, parameters_by_layer
from elmo_framework.nn.overlapping_windows import windows

_PIECES_AT_ONCE = 4096
"""The largest number of pieces of a batch, padding counted; it bounds the memory of a pass."""

_DEFAULT_LENGTH = 512
"""Pieces of a window where neither the tokenizer nor the model limits them."""

_NO_LIMIT = 10**9
"""Tokenizers without a limit have a larger number."""


@dataclass(frozen=True)
class TransformerOptions:
    """The options that the layers of a transformer depend on.

    Attributes:
        max_length: the largest number of pieces that are read together, special tokens counted; a
            longer sentence is read in overlapping windows. None for what the model takes.
        sub_token_mode: the vector of a word of several pieces: that of its first or its last piece,
            or their mean.
        layers: the layers that are given, -1 being the top one; None for all.
    """

    max_length: int | None = None
    sub_token_mode: SubTokenMode = "mean"
    layers: tuple[int, ...] | None = None

    @property
    def variant(self) -> str:
        """Part of the key of a layer cache: other layers have another."""
        mode = "mean" if self.sub_token_mode == "avg" else self.sub_token_mode
        return json.dumps(asdict(replace(self, sub_token_mode=mode)), sort_keys=True)

    @classmethod
    def of_variant(cls, variant: str) -> TransformerOptions:
        """Return the options with a variant."""
        options = json.loads(variant)
        layers = options["layers"]
        return cls(**{**options, "layers": None if layers is None else tuple(layers)})


class _Part(NamedTuple):
    """A window of a sentence as it is read.

    Attributes:
        ids: its pieces between special tokens.
        used: the positions whose vectors are used.
    """

    ids: list[int]
    used: list[int]


@final
class Transformer(nn.Module):
    """A transformer with its tokenizer: sentences in, layers of words out.

    A word without pieces, such as one that the tokenizer drops, has zeros. The boundaries `<S>` and
    `</S>` have the layers of the first and the last special token that the tokenizer adds; zeros
    where it adds none there.

    Args:
        encoder: gives `hidden_states`.
        tokenizer: a fast one.
        options: see `TransformerOptions`.

    Raises:
        DataError: this kind of model is not supported.
        ValueError: an option does not fit the model.
    """

    def __init__(self, encoder: nn.Module, tokenizer: Any, options: TransformerOptions) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        try:
            self.dim = int(config.hidden_size)
            self._num_hidden = int(config.num_hidden_layers) + 1
        except AttributeError as error:  # of several models in one, such as CLIP
            raise DataError(f"this kind of transformer is not supported: {error}") from error
        self._tokenizer, self._mode = tokenizer, options.sub_token_mode
        self._layers = _selected(options.layers, self._num_hidden)
        self.num_layers = len(self._layers)
        self._prefix, self._suffix = special_tokens(tokenizer)
        # Masked, so that any piece will do; some configs have none, or -1.
        padding = config.pad_token_id
        self._padding = padding if isinstance(padding, int) and padding >= 0 else 0
        num_special = len(self._prefix) + len(self._suffix)
        self._window = max_length(encoder, tokenizer, options.max_length) - num_special
        if self._window < 2:
            raise ValueError(
                f"max_length is {self._window + num_special}; with "
                f"{plural(num_special, 'special token')} it must be {num_special + 2} or more"
            )

    def forward(self, text: TextBatch) -> Float[Tensor, "layers batch steps dim"]:
        """Return the layers of a batch with boundaries; each distinct sentence is computed once."""
        mask, device = framed_mask(text.mask), text.mask.device
        dtype = torch.get_default_dtype()
        layers = torch.zeros(self.num_layers, mask.numel(), self.dim, dtype=dtype, device=device)
        distinct = list(dict.fromkeys(words for words in text.words if words))
        if distinct:
            vectors = self._vectors(distinct, device).to(dtype)
            positions, steps = _scattered(text.words, distinct, mask.shape[1])
            rows = vectors.index_select(1, torch.tensor(steps, device=device))
            layers = layers.index_copy(1, torch.tensor(positions, device=device), rows)
        return layers.view(self.num_layers, *mask.shape, self.dim)

    def _vectors(
        self, sentences: Sequence[Sequence[str]], device: torch.device
    ) -> Float[Tensor, "layers steps dim"]:
        """Return the vectors of words and boundaries, one sentence after the other."""
        pieces = tokenize(self._tokenizer, sentences)
        parts = [part for each in pieces for part in self._parts(each.ids)]
        lengths = [len(part.ids) for part in parts]
        order = longest_first(range(len(parts)), lengths)
        vectors: list[Tensor] = [torch.empty(0)] * len(parts)
        for group in padded_batches(order, lengths.__getitem__, max_tokens=_PIECES_AT_ONCE):
            hidden = self._hidden([parts[index].ids for index in group], device)
            for row, index in enumerate(group):
                vectors[index] = hidden[:, row, parts[index].used]
        nothing = torch.zeros(self.num_layers, 0, self.dim, device=device)
        ends = int(bool(self._prefix)), int(bool(self._suffix))
        counts = [
            np.concatenate([ends[:1], each.counts(len(words)), ends[1:]])
            for each, words in zip(pieces, sentences, strict=True)
        ]
        of_words = torch.from_numpy(np.concatenate(counts)).to(device)
        return pool_pieces(torch.cat(vectors or [nothing], dim=1), of_words, self._mode)

    def _parts(self, ids: Sequence[int]) -> Iterator[_Part]:
        """Yield the windows of a sentence between special tokens; none without any token."""
        prefix, suffix = self._prefix, self._suffix
        for window in windows(len(ids), self._window):
            part = [*prefix, *ids[window.start : window.end], *suffix]
            offset = len(prefix) - window.start
            positions = [*range(window.first + offset, window.last + offset)]
            if prefix and window.start == 0:
                positions = [0, *positions]
            if suffix and window.end == len(ids):
                positions.append(len(part) - 1)
            if part:
                yield _Part(part, positions)

    def _hidden(
        self, rows: Sequence[Sequence[int]], device: torch.device
    ) -> Float[Tensor, "layers rows pieces dim"]:
        ids, mask = padded(rows, self._padding, device)
        output = self.encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        hidden = output.hidden_states
        if len(hidden) != self._num_hidden or hidden[-1].shape[-1] != self.dim:
            raise DataError(
                f"this kind of transformer is not supported: {len(hidden)} hidden states of "
                f"{hidden[-1].shape[-1]} numbers instead of {self._num_hidden} of {self.dim}"
            )
        return torch.stack([hidden[layer] for layer in self._layers])


@final
class FrozenTransformer(LayerSource):
    """Gives the layers of batches, without gradients.

    Its weights never change, so `copy.deepcopy` shares it.

    Args:
        transformer: its weights must not change any more.
        precision: of the computation.
        fingerprint: of the files that it was read from.
        variant: of its options.
    """

    def __init__(
        self,
        transformer: Transformer,
        precision: Precision,
        fingerprint: Reference,
        variant: str,
    ) -> None:
        super().__init__(
            num_layers=transformer.num_layers,
            dim=transformer.dim,
            fingerprint=fingerprint,
            num_frozen_parameters=sum(each.numel() for each in transformer.parameters()),
            variant=variant,
        )
        narrow = precision == "bfloat16"
        self._transformer = transformer.to(torch.bfloat16) if narrow else transformer
        self._transformer.eval().requires_grad_(False)

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenTransformer:
        return self

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        device = text.mask.device
        with self.lock, torch.no_grad(), no_autocast(device):
            self._transformer.to(device)
            return LayerOutput(self._transformer(text), framed_mask(text.mask), {})


@final
class TrainedTransformer(LayerSource):
    """Gives the layers of batches with gradients; its own dropout is active in training."""

    def __init__(self, transformer: Transformer) -> None:
        super().__init__(num_layers=transformer.num_layers, dim=transformer.dim, module=transformer)
        self._transformer = transformer

    def compute(self, text: TextBatch, state: LayerState | None = None) -> LayerOutput:
        return LayerOutput(self._transformer(text), framed_mask(text.mask), {})

    def layer_parameters(self) -> Sequence[Sequence[nn.Parameter]]:
        return parameters_by_layer(self._transformer.encoder)


def open_transformer(
    folder: Path,
    options: TransformerOptions = TransformerOptions(),
    *,
    requires_grad: bool = False,
    cache: Literal["disk", "memory", "none"] = "none",
    cache_dtype: CacheDtype = "float16",
    precision: Precision = "float32",
) -> LayerSource:
    """Open a transformer.

    A frozen or cached one that is in use is shared by all that open equal files with equal options.

    Args:
        folder: of its configuration, weights and tokenizer, as `save_pretrained` writes them.
        options: that its layers depend on.
        requires_grad: whether it is trained with the task; the options below have no effect then.
        cache: where layers are cached.
        cache_dtype: the type of cached numbers.
        precision: of a frozen one: `float32`, or `bfloat16`, which is faster and less exact.

    Raises:
        DataError: a file is missing or damaged.
        RunError: the extra `transformers` is not installed.
        ValueError: an option does not fit the model, or its precision is `int8`.
    """
    if precision == "int8":
        raise ValueError("precision is 'int8', which is for biLMs; allowed: 'float32', 'bfloat16'")
    if requires_grad:
        return TrainedTransformer(_read(folder, options))
    fingerprint = transformer_reference(folder)
    return shared_source(
        fingerprint,
        lambda: FrozenTransformer(_read(folder, options), precision, fingerprint, options.variant),
        partial(open_transformer, folder, options, precision=precision),
        cache=cache,
        cache_dtype=cache_dtype,
        precision=precision,
        variant=options.variant,
    )


def padded(
    rows: Sequence[Sequence[int]], padding: int, device: torch.device
) -> tuple[Int[Tensor, "rows pieces"], Int[Tensor, "rows pieces"]]:
    """Return ids padded on the right, and the mask that attention reads."""
    ids = torch.full((len(rows), max(map(len, rows))), padding)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids.to(device), mask.to(device)


def max_length(encoder: nn.Module, tokenizer: Any, stated: int | None = None) -> int:
    """Return how many pieces are read together, special tokens counted.

    Args:
        encoder: the model, whose positions are a limit.
        tokenizer: its limit is that of the training.
        stated: a smaller number, if any.

    Raises:
        ValueError: the number stated is larger than the limit.
    """
    config: Any = encoder.config
    limits = [getattr(config, "max_position_embeddings", None), tokenizer.model_max_length]
    limits += [
        # RoBERTa numbers positions from the one after padding.
        module.num_embeddings - module.padding_idx - 1
        for name, module in encoder.named_modules()
        if name.endswith("position_embeddings")
        and isinstance(module, nn.Embedding)
        and module.padding_idx is not None
    ]
    finite = [int(limit) for limit in limits if limit is not None and 0 < limit < _NO_LIMIT]
    if stated is not None and finite and stated > min(finite):
        raise ValueError(f"max_length is {stated}, and the transformer takes {min(finite)} pieces")
    return min(finite, default=_DEFAULT_LENGTH) if stated is None else stated


def _read(folder: Path, options: TransformerOptions) -> Transformer:
    return Transformer(read_encoder(folder), read_tokenizer(folder), options)


def _selected(layers: Sequence[int] | None, num_layers: int) -> list[int]:
    if layers is None:
        return [*range(num_layers)]
    for layer in layers:
        if not -num_layers <= layer < num_layers:
            raise ValueError(
                f"layers has {layer}, and the transformer has {plural(num_layers, 'layer')}; "
                f"allowed: {-num_layers} to {num_layers - 1}"
            )
    if not layers:
        raise ValueError("layers is empty; name one at least, or leave it out for all")
    return [*layers]


def _scattered(
    rows: Iterable[Sequence[str]], distinct: Iterable[Sequence[str]], num_steps: int
) -> tuple[list[int], list[int]]:
    """Return the positions of steps in a padded batch, and their steps in distinct sentences."""
    first, total = dict[Sequence[str], int](), 0
    for words in distinct:
        first[words] = total
        total += len(words) + NUM_BOUNDARIES
    positions, steps = list[int](), list[int]()
    for row, words in enumerate(rows):
        length = len(words) + NUM_BOUNDARIES if words else 0
        positions += range(row * num_steps, row * num_steps + length)
        steps += range(first.get(words, 0), first.get(words, 0) + length)
    return positions, steps
