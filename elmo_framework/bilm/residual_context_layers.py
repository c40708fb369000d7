"""Context layers with residual sums: a transformer, a GRU and a gated linear recurrence.

They are as wide as the word vectors, so they need no projection key: each layer reads and writes
the residual sum of its direction, and is wider inside.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import Annotated, final

import torch
from annotated_types import Ge, Le
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from elmo_framework.bilm.context_layers import ContextLayers, ContextOutput, Direction, State
from elmo_framework.config.types import MAX_COUNT, Count, Dim, DropoutRate, Local, NumLayers
from elmo_framework.data.batch import grouped
from elmo_framework.kernels.backend import no_autocast, uses_cpu_code
from elmo_framework.nn.masking import moved_mask
from elmo_framework.nn.overlapping_windows import windows
from elmo_framework.nn.residual_layer import (
    GruLayer,
    LinearRecurrenceLayer,
    ResidualLayer,
    TransformerLayer,
)
from elmo_framework.nn.windowed_attention import WindowedAttention

# Bound the memory of a long text that is read without gradients.
_STEPS_AT_ONCE = 512
_WORDS_AT_ONCE = 4096


class ResidualContextLayers(ContextLayers, ABC):
    """Residual layers in each direction; the top layer is normalized.

    The layers in between are the residual sums themselves, as the hidden states of Hugging Face's
    models are.

    Args:
        layer: makes a layer.
        input_dim: dimension of the word vectors and of each layer.
        num_layers: number of layers of each direction.
    """

    # The most words of a piece on a CPU, so that the gates of a layer stay in its cache.
    _words_in_cache: int | None = None

    def __init__(self, layer: Callable[[], ResidualLayer], *, input_dim: int, num_layers: int):
        super().__init__()
        self.num_layers, self.output_dim = num_layers, input_dim
        self.forward_layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.backward_layers = nn.ModuleList(layer() for _ in range(num_layers))
        self.forward_norm, self.backward_norm = nn.LayerNorm(input_dim), nn.LayerNorm(input_dim)

    def read(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        direction: Direction,
        state: State | None = None,
    ) -> ContextOutput:
        """Read rows; the state is that of the first layer, then of the next."""
        is_forward = direction == "forward"
        layers = self.forward_layers if is_forward else self.backward_layers
        norm = self.forward_norm if is_forward else self.backward_norm
        steps = _STEPS_AT_ONCE
        if self._words_in_cache is not None and uses_cpu_code(inputs):
            steps = min(steps, max(1, self._words_in_cache // max(1, len(inputs))))
        return _read_rows(layers, norm, inputs, mask, state, steps_at_once=steps)


@final
@ContextLayers.register("transformer")
class TransformerContextLayers(ResidualContextLayers):
    """A transformer in each direction: each word attends to itself and to the words read before.

    Pre-norm layers (Xiong et al. 2020) with rotary positions (Su et al. 2021), as wide as the word
    vectors. A word attends to at most `memory_size` words before it, wherever running text is cut
    into windows: the state of a row holds them (Transformer-XL, Dai et al. 2019). Two directions
    that share nothing are those of AllenNLP's bidirectional transformer language model.

    Args:
        input_dim: the dimension of the word vectors and of each layer.
        num_layers: the number of layers in each direction.
        num_heads: the number of attention heads.
        head_dim: the dimension of a head; all heads together may be wider than the word vectors.
        feedforward_dim: the width inside the feedforward network.
        memory_size: how many words before a word it attends to.
        dropout: the dropout rate of what each part of a layer adds, while the biLM is trained.
    """

    def __init__(
        self,
        *,
        input_dim: Local[int],
        num_layers: NumLayers = 2,
        num_heads: Dim = 8,
        head_dim: Dim = 64,
        feedforward_dim: Dim = 2048,
        memory_size: Count = 64,
        dropout: DropoutRate = 0.0,
    ) -> None:
        require_even(head_dim)

        def layer() -> ResidualLayer:
            return TransformerLayer(
                input_dim,
                WindowedAttention(
                    input_dim, num_heads=num_heads, head_dim=head_dim, memory_size=memory_size
                ),
                feedforward_dim=feedforward_dim,
                branch_scale=(2 * num_layers) ** -0.5,
                dropout=dropout,
            )

        super().__init__(layer, input_dim=input_dim, num_layers=num_layers)


@final
@ContextLayers.register("gru")
class GruContextLayers(ResidualContextLayers):
    """GRU layers with a projection and a residual sum (Cho et al. 2014), pre-norm.

    Args:
        input_dim: the dimension of the word vectors and of each layer.
        cell_size: the dimension of the state h.
        num_layers: the number of layers in each direction.
        dropout: the dropout rate of what each layer adds, while the biLM is trained.
    """

    def __init__(
        self,
        *,
        input_dim: Local[int],
        cell_size: Dim = 4096,
        num_layers: NumLayers = 2,
        dropout: DropoutRate = 0.0,
    ) -> None:
        def layer() -> ResidualLayer:
            scale = num_layers**-0.5
            return GruLayer(input_dim, cell_size, branch_scale=scale, dropout=dropout)

        super().__init__(layer, input_dim=input_dim, num_layers=num_layers)


@final
@ContextLayers.register("linear_recurrence")
class LinearRecurrenceContextLayers(ResidualContextLayers):
    """Gated recurrences without a product inside their loop: one large product and a scan.

    f = sigmoid(W_f x + b_f); c' = f c + (1 - f) W_c x; y = x + W (silu(W_o x) c'), x normalized
    (minGRU, Feng et al. 2024, with the output gate of HGRN, Qin et al. 2023).

    Args:
        input_dim: the dimension of the word vectors and of each layer.
        cell_size: the dimension of the memory c.
        num_layers: the number of layers in each direction.
        dropout: the dropout rate of what each layer adds, while the biLM is trained.
    """

    _words_in_cache = 512

    def __init__(
        self,
        *,
        input_dim: Local[int],
        cell_size: Dim = 4096,
        num_layers: NumLayers = 4,
        dropout: DropoutRate = 0.0,
    ) -> None:
        def layer() -> ResidualLayer:
            scale = num_layers**-0.5
            return LinearRecurrenceLayer(input_dim, cell_size, branch_scale=scale, dropout=dropout)

        super().__init__(layer, input_dim=input_dim, num_layers=num_layers)


@final
@ContextLayers.register("bidirectional_transformer")
class BidirectionalTransformerContextLayers(ContextLayers):
    """A transformer whose words attend to all words of their row, for a model of type `masked_lm`.

    Pre-norm layers with rotary positions, as wide as the word vectors, like those of `transformer`.
    A row of more than `window_size` words is read in overlapping windows: so a text of any length
    needs bounded memory, and no word is further from another than in training.

    Args:
        input_dim: the dimension of the word vectors and of each layer.
        num_layers: the number of layers.
        num_heads: the number of attention heads.
        head_dim: the dimension of a head; all heads together may be wider than the word vectors.
        feedforward_dim: the width inside the feedforward network.
        window_size: how many words are read together, boundaries counted.
        dropout: the dropout rate of what each part of a layer adds, while it is trained.

    Attributes:
        mask_vector: stands for a word that is hidden in training.
    """

    is_bidirectional = True
    window_size: int

    def __init__(
        self,
        *,
        input_dim: Local[int],
        num_layers: NumLayers = 4,
        num_heads: Dim = 8,
        head_dim: Dim = 64,
        feedforward_dim: Dim = 2048,
        window_size: Annotated[int, Ge(2), Le(MAX_COUNT)] = 512,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        require_even(head_dim)
        self.num_layers, self.output_dim, self.window_size = num_layers, input_dim, window_size
        self.layers = nn.ModuleList(
            TransformerLayer(
                input_dim,
                WindowedAttention(
                    input_dim, num_heads=num_heads, head_dim=head_dim, memory_size=None
                ),
                feedforward_dim=feedforward_dim,
                branch_scale=(2 * num_layers) ** -0.5,
                dropout=dropout,
            )
            for _ in range(num_layers)
        )
        # Not near zero, where the gradient of a normalized vector is large.
        self.norm, self.mask_vector = nn.LayerNorm(input_dim), nn.Parameter(torch.empty(input_dim))
        nn.init.normal_(self.mask_vector)

    def read(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        direction: Direction,
        state: State | None = None,
    ) -> ContextOutput:
        """Read rows from left to right; there is no state."""
        if inputs.shape[1] <= self.window_size:
            return self._read_whole(inputs, mask)
        parts = [
            (row, window)
            for row, length in enumerate(mask.sum(dim=1).tolist())
            for window in windows(length, self.window_size)
        ]
        layers = inputs.new_zeros(self.num_layers, *inputs.shape, dtype=self.norm.weight.dtype)
        steps = torch.arange(self.window_size, device=inputs.device)
        for group in grouped(parts, max(1, _WORDS_AT_ONCE // self.window_size)):
            words = pad_sequence(
                [inputs[row, part.start : part.end] for row, part in group], batch_first=True
            )
            lengths = torch.tensor([part.end - part.start for _, part in group])
            own = steps[: words.shape[1]] < lengths.to(inputs.device)[:, None]
            read = self._read_whole(words, own).layers
            for number, (row, part) in enumerate(group):
                used = slice(part.first - part.start, part.last - part.start)
                layers[:, row, part.first : part.last] = read[:, number, used]
        return ContextOutput(layers, ())

    def _read_whole(self, inputs: Tensor, mask: Tensor) -> ContextOutput:
        return _read_rows(self.layers, self.norm, inputs, mask, None, steps_at_once=inputs.shape[1])


def require_even(head_dim: int) -> None:
    """Raise a ValueError if rotary positions cannot pair the numbers of a head."""
    if head_dim % 2:
        raise ValueError(f"head_dim is {head_dim}; rotary positions need an even number")


def _read_rows(
    layers: nn.ModuleList,
    norm: nn.LayerNorm,
    inputs: Tensor,
    mask: Tensor,
    state: State | None,
    *,
    steps_at_once: int,
) -> ContextOutput:
    """Read rows; without gradients in pieces, each from the state of the one before."""
    inputs, mask = inputs.to(norm.weight.dtype), moved_mask(mask, inputs.device)
    if torch.is_grad_enabled():
        return _read(layers, norm, inputs, mask, state)
    pieces = []
    # The precision of frozen products is explicit; an outer autocast does not apply.
    with no_autocast(inputs):
        for words, is_word in zip(
            torch.split(inputs, steps_at_once, dim=1),
            torch.split(mask, steps_at_once, dim=1),
            strict=True,
        ):
            output = _read(layers, norm, words, is_word, state)
            pieces.append(output.layers)
            state = output.state
    return ContextOutput(pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=2), state or ())


def _read(
    layers: nn.ModuleList, norm: nn.LayerNorm, words: Tensor, mask: Tensor, state: State | None
) -> ContextOutput:
    outputs, ends = list[Tensor](), list[Tensor]()
    starts = _by_layer(state, len(layers))
    for layer, start in zip(layers, starts, strict=True):
        words, end = layer(words, mask, start)
        outputs.append(words)
        ends.extend(end)
    outputs[-1] = norm(outputs[-1]).to(words.dtype)
    stacked = torch.stack(outputs)
    return ContextOutput(stacked.masked_fill(~mask[:, :, None], 0), tuple(ends))


def _by_layer(state: State | None, num_layers: int) -> Sequence[State | None]:
    if not state:
        return [None] * num_layers
    size = len(state) // num_layers
    return [state[first : first + size] for first in range(0, len(state), size)]
