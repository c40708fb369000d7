"""The family of context layers: what reads a sentence in one direction after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Literal, NamedTuple, TypeAlias, final, get_args

import torch
from annotated_types import Gt
from jaxtyping import Bool, Float
from torch import Tensor

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Dim, DropoutRate, Local, NumLayers
from elmo_framework.model.part import Part
from elmo_framework.nn.elmo_lstm import ElmoLstm, ProjectedLstm, read_frozen
from elmo_framework.nn.lstm_layer import LstmState
from elmo_framework.nn.masking import moved_mask
from elmo_framework.nn.packing import reversed_rows

Direction: TypeAlias = Literal["forward", "backward"]
State: TypeAlias = tuple[Tensor, ...]
"""The state that one direction carries between batches: tensors whose dimension 0 is the batch.
"""


class ContextOutput(NamedTuple):
    """The output of one direction.

    Attributes:
        layers: "layers batch tokens dim", in reading order, zero at padding.
        state: after the last word of each row.
    """

    layers: Float[Tensor, "layers batch tokens dim"]
    state: State


class ContextLayers(Part, Registrable, ABC):
    """Reads word vectors in one direction; the two directions share nothing.

    A member takes `input_dim: Local[int]`.

    Attributes:
        num_layers: the number of layers of each direction.
        output_dim: the dimension of one direction's layer.
        is_bidirectional: whether each layer reads both sides of a word. Then there are no two
            directions: `read` gets the words from left to right, and nothing is carried.
        window_size: of layers that read both sides: the steps of a row that are read together. A
            longer row is read in overlapping windows (`nn.overlapping_windows`).
    """

    num_layers: int
    output_dim: int
    is_bidirectional: bool = False
    window_size: int | None = None

    @abstractmethod
    def read(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        direction: Direction,
        state: State | None = None,
    ) -> ContextOutput:
        """Read rows from their first word to their last.

        Args:
            inputs: word vectors in reading order: for the backward direction the caller has
                reversed each row within its length.
            mask: true at words, which come first in a row; one on the CPU is not waited for.
            direction: whose weights are used.
            state: the last state of the same rows; zeros when None.
        """

    def read_both(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        states: Mapping[Direction, State],
    ) -> tuple[Float[Tensor, "layers batch tokens both"], Mapping[Direction, State]]:
        """Read rows in two directions.

        Args:
            words: in the order of the text; zero at padding.
            mask: see `read`.
            states: the last state of the same rows in each direction; zeros where one is missing.

        Returns:
            [x; x], then [forward; backward] of each layer, and the state of each direction.
        """
        forward = self.read(words, mask, direction="forward", state=states.get("forward"))
        on_device = moved_mask(mask, words.device)
        turned = reversed_rows(words, on_device)
        backward = self.read(turned, mask, direction="backward", state=states.get("backward"))
        backward_layers = [reversed_rows(layer, on_device) for layer in backward.layers]
        context = torch.cat([forward.layers, torch.stack(backward_layers)], dim=-1)
        layers = torch.cat([words.repeat(1, 1, 2)[None], context])
        return layers, {"forward": forward.state, "backward": backward.state}

    def clip_rates(self, state: State) -> dict[str, float]:
        """Return the fraction of a state's numbers that are at a limit, by the limit's name."""
        return {}


@final
@ContextLayers.register("elmo_lstm")
class ElmoLstmContextLayers(ContextLayers):
    """LSTM layers with projection, clipping and skip connections (section 3.1).

    c' = clip(sigmoid(f + 1) c + sigmoid(i) tanh(j)); h' = clip(W (sigmoid(o) tanh(c'))), and from
    the second layer on the input of a layer is added to its output. The defaults are those of
    the published model.

    Args:
        input_dim: the dimension of the word vectors.
        cell_size: the dimension of the memory c.
        projection_dim: the dimension of the output h. With null, or where it is not smaller than
            `cell_size`, h is not projected: it has the dimension of c.
        num_layers: the number of layers in each direction.
        cell_clip: the largest magnitude in c; null for no limit.
        projection_clip: the largest magnitude in a projected h; null for no limit.
        use_skip_connections: whether a layer's input is added to its output.
        dropout: dropout rate of each layer's input in pretraining.
    """

    def __init__(
        self,
        *,
        input_dim: Local[int],
        cell_size: Dim = 4096,
        projection_dim: Dim | None = 512,
        num_layers: NumLayers = 2,
        cell_clip: Annotated[float, Gt(0)] | None = 3.0,
        projection_clip: Annotated[float, Gt(0)] | None = 3.0,
        use_skip_connections: bool = True,
        dropout: DropoutRate = 0.0,
    ) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.output_dim = min(projection_dim or cell_size, cell_size)
        has_projection = self.output_dim < cell_size
        dims = [input_dim, *[self.output_dim] * (num_layers - 1)]

        def stack() -> ElmoLstm:
            cells = [
                ProjectedLstm(
                    dim,
                    cell_size,
                    projection_dim=self.output_dim if has_projection else None,
                    cell_clip=cell_clip,
                    projection_clip=projection_clip,
                )
                for dim in dims
            ]
            return ElmoLstm(cells, use_skip_connections=use_skip_connections, dropout=dropout)

        self.forward_lstm, self.backward_lstm = stack(), stack()
        self._clips = {
            "projection": projection_clip if has_projection else None,
            "cell": cell_clip,
        }

    def read(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        *,
        direction: Direction,
        state: State | None = None,
    ) -> ContextOutput:
        """Read rows; the state is h and c of the first layer, then of the next."""
        lstm = self.forward_lstm if direction == "forward" else self.backward_lstm
        layers, states = lstm(inputs, mask, _by_layer(state or ()))
        return ContextOutput(layers, tuple(chain.from_iterable(states)))

    def read_both(
        self,
        words: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        states: Mapping[Direction, State],
    ) -> tuple[Float[Tensor, "layers batch tokens both"], Mapping[Direction, State]]:
        """Read rows in two directions; frozen layers in one call where compiled code can."""
        lstms = self.forward_lstm, self.backward_lstm
        starts = [_by_layer(states.get(direction) or ()) for direction in get_args(Direction)]
        layers = words.new_zeros(1 + self.num_layers, *words.shape[:2], 2 * self.output_dim)
        ends = read_frozen(lstms, words, mask, starts, layers[1:])
        if ends is None:
            return super().read_both(words, mask, states)
        torch.cat([words, words], dim=-1, out=layers[0])
        joined = (tuple(chain.from_iterable(end)) for end in ends)
        return layers, dict(zip(get_args(Direction), joined, strict=True))

    def clip_rates(self, state: State) -> dict[str, float]:
        """Return the fractions for each layer: `projection_1`, `cell_1`, `projection_2`, ..."""
        return {
            f"{name}_{layer}": (values.abs() >= limit).float().mean().item()
            for layer, pair in enumerate(_by_layer(state), start=1)
            for (name, limit), values in zip(self._clips.items(), pair, strict=True)
            if limit is not None
        }


def _by_layer(state: State) -> tuple[LstmState, ...]:
    pairs = zip(state[::2], state[1::2], strict=True)
    return tuple(LstmState(hidden, memory) for hidden, memory in pairs)
