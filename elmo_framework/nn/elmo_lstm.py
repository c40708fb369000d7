"""LSTM layers of one direction of a biLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.kernels.backend import autocast_dtype, no_autocast, uses_cpu_code
from elmo_framework.kernels.lstm_stack import LARGEST_WEIGHT, PackedLayer, PackedStack
from elmo_framework.kernels.packed_product import pack
from elmo_framework.kernels.product import (
    Precision,
    TrainingPrecision,
    linear,
    prepared,
    require_support,
)
from elmo_framework.nn.lstm_layer import LstmState, read_layer, train_layer
from elmo_framework.nn.packing import Packing
from elmo_framework.nn.part import Gates, TensorPart

_Reader: TypeAlias = Callable[[Tensor, Sequence[int], LstmState], tuple[Tensor, LstmState]]
"""`read_layer` with the products and limits of a layer."""


class ProjectedLstm(TensorPart):
    """An LSTM layer with a projected output (LSTMP, Sak et al. 2014).

    i, j, f, o = W_input x + W_recurrent h + b;
    c' = clip(sigmoid(f + 1) c + sigmoid(i) tanh(j));
    h' = clip(W_projection (sigmoid(o) tanh(c'))).

    The gates are in TensorFlow's order, and b does not include the 1, so that the parameters are
    those of a bilm-tf file, transposed.

    Args:
        input_dim: dimension of x.
        cell_size: dimension of c.
        projection_dim: dimension of h; without it h has that of c and is not clipped.
        cell_clip: maximum absolute value of c.
        projection_clip: maximum absolute value of h.
    """

    def __init__(
        self,
        input_dim: int,
        cell_size: int,
        *,
        projection_dim: int | None = None,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
    ) -> None:
        super().__init__()
        self.cell_size, self.output_dim = cell_size, projection_dim or cell_size
        self.cell_clip = cell_clip
        self.projection_clip = None if projection_dim is None else projection_clip
        self._frozen: Callable[[], _Reader] | None = None
        self._packed: Callable[[], PackedLayer | None] = _no_layer
        self.input_weight = nn.Parameter(torch.empty(4 * cell_size, input_dim))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * cell_size, self.output_dim))
        self.bias = nn.Parameter(torch.zeros(4 * cell_size))
        self.projection_weight = (
            None if projection_dim is None else nn.Parameter(torch.empty(projection_dim, cell_size))
        )
        # TensorFlow has one matrix for both halves; Glorot's bound is that of the whole matrix.
        fan_in = self.input_weight.shape[1] + self.output_dim
        bound = (6 / (fan_in + 4 * self.cell_size)) ** 0.5
        nn.init.uniform_(self.input_weight, -bound, bound)
        nn.init.uniform_(self.recurrent_weight, -bound, bound)
        if self.projection_weight is not None:
            nn.init.xavier_uniform_(self.projection_weight)

    def parameter_gates(self, name: str) -> Gates | None:
        if name == "projection_weight":
            return None
        return Gates(4, forget=2, is_bias=name == "bias", forget_bias=1.0)

    def zero_state(self, num_rows: int) -> LstmState:
        zeros = self.bias.new_zeros
        return LstmState(zeros(num_rows, self.output_dim), zeros(num_rows, self.cell_size))

    def freeze(self, precision: Precision) -> None:
        require_support(self.bias, precision)
        # Prepared when they are needed, as one excludes the other.
        self._frozen = cache(partial(self._reader, precision))
        self._packed = cache(partial(self._pack, precision))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the prepared products, which cannot be copied."""
        return {**self.__dict__, "_frozen": None, "_packed": _no_layer}

    def packed(self) -> PackedLayer | None:
        """Return the weights for `PackedStack`; None if it does not support them, or not frozen."""
        return self._packed()

    def _pack(self, precision: Precision) -> PackedLayer | None:
        weights = self.input_weight, self.recurrent_weight, self.projection_weight
        if max(w.numel() for w in weights if w is not None) > LARGEST_WEIGHT:
            return None
        biases = self.bias_of_gates(), None, None
        precisions = precision, precision, _of_projection(precision)
        packed = [
            None if weight is None else pack(weight, bias, each)
            for weight, bias, each in zip(weights, biases, precisions, strict=True)
        ]
        inputs, recurrent, projection = packed
        has_projection = self.projection_weight is not None
        if inputs is None or recurrent is None or has_projection != (projection is not None):
            return None
        return PackedLayer(inputs, recurrent, projection)

    def forward(
        self, words: Float[Tensor, "words input"], sizes: Sequence[int], start: LstmState
    ) -> tuple[Float[Tensor, "words hidden"], LstmState]:
        """Read packed rows (`Packing`).

        Args:
            words: word vectors, step by step.
            sizes: number of unfinished rows at each step.
            start: initial states, in the order of the packing.

        Returns:
            h for each word, and the state of each row after its last word.
        """
        if not torch.is_grad_enabled():
            read = self._frozen() if self._frozen else self._reader("float32")
            # The precision of the products is explicit; an outer autocast does not apply.
            with no_autocast(words):
                return read(words.to(self.bias.dtype), sizes, start)
        gates = linear(words, self.input_weight, self.bias_of_gates())
        # In mixed precision products round their operands, but the cell state stays float32; on the
        # CPU so do the sums, as the compiled step supports only float32.
        narrow = autocast_dtype(words) or gates.dtype
        precision: TrainingPrecision = "bfloat16" if narrow == torch.bfloat16 else "float32"
        if uses_cpu_code(gates):
            gates = gates.to(self.bias.dtype)
        recurrent, projection = self.recurrent_weight, self.projection_weight
        with no_autocast(gates):
            return train_layer(
                gates,
                sizes,
                LstmState(start.hidden.to(gates.dtype), start.memory),
                recurrent_weight=recurrent.to(gates.dtype),
                projection_weight=None if projection is None else projection.to(gates.dtype),
                cell_clip=self.cell_clip,
                projection_clip=self.projection_clip,
                precision=precision,
            )

    def _reader(self, precision: Precision) -> _Reader:
        weight = self.projection_weight
        return partial(
            read_layer,
            input_product=prepared(self.input_weight, self.bias_of_gates(), precision),
            recurrent_product=prepared(self.recurrent_weight, None, precision),
            projection_product=(
                None if weight is None else prepared(weight, None, _of_projection(precision))
            ),
            cell_clip=self.cell_clip,
            projection_clip=self.projection_clip,
        )

    def bias_of_gates(self) -> Float[Tensor, " gates"]:
        """Return b plus 1 at the forget gates."""
        size = self.cell_size
        return self.bias + functional.pad(self.bias.new_ones(size), (2 * size, size))


def _no_layer() -> None:
    """Return the packed weights of a layer that is not frozen."""


def _of_projection(precision: Precision) -> Precision:
    """Return the precision of the projection: its errors are those of h, and it is small."""
    return "bfloat16" if precision == "int8" else precision


class ElmoLstm(nn.Module):
    """Layers of `ProjectedLstm`, read from the first word to the last.

    y_1 = LSTM_1(d(x)); y_l = LSTM_l(d(y_(l-1))) + d(y_(l-1)), where d is dropout and the sum is
    the skip connection: it is outside the recurrence, is not clipped, and layer 1 has none
    (bilm-tf, training.py).

    Args:
        cells: the layers, from the first to the last.
        use_skip_connections: whether there are skip connections.
        dropout: dropout rate of the input of each layer; a new mask at each step.
    """

    def __init__(
        self,
        cells: Sequence[ProjectedLstm],
        *,
        use_skip_connections: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_layers, self.output_dim = len(cells), cells[-1].output_dim
        self.use_skip_connections, self._dropout = use_skip_connections, dropout
        self.cells = nn.ModuleList(cells)

    @property
    def drops_inputs(self) -> bool:
        return self.training and self._dropout > 0

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens dim"],
        mask: Bool[Tensor, "batch tokens"],
        states: tuple[LstmState, ...] = (),
    ) -> tuple[Float[Tensor, "layers batch tokens output"], tuple[LstmState, ...]]:
        """Read rows.

        Args:
            inputs: word vectors.
            mask: true at words, false at padding, which follows the words. A mask on the CPU
                avoids a synchronization with the device of the inputs.
            states: initial states of each layer; zeros when empty.

        Returns:
            The outputs of each layer, zero at padding, and its state after the last word of each
            row.
        """
        outputs = inputs.new_zeros(self.num_layers, *inputs.shape[:2], self.output_dim)
        if ends := read_frozen([self], inputs, mask, [states], outputs):
            return outputs, ends[0]
        lstms = cast(Sequence[ProjectedLstm], self.cells)
        packing = Packing.of(mask).to(inputs.device)
        words, layers, last = packing.pack(inputs), [], []
        for layer, lstm in enumerate(lstms):
            words = functional.dropout(words, self._dropout, self.training)
            start = states[layer] if states else lstm.zero_state(len(inputs))
            hidden, end = lstm(words, packing.sizes, LstmState(*map(packing.sort, start)))
            has_skip = self.use_skip_connections and layer > 0
            words = hidden + words if has_skip else hidden
            layers.append(packing.unpack(words))
            last.append(LstmState(*map(packing.restore, end)))
        return torch.stack(layers), tuple(last)


def read_frozen(
    lstms: Sequence[ElmoLstm],
    words: Float[Tensor, "batch tokens dim"],
    mask: Bool[Tensor, "batch tokens"],
    states: Sequence[tuple[LstmState, ...]],
    outputs: Float[Tensor, "layers batch tokens output"],
) -> list[tuple[LstmState, ...]] | None:
    """Read rows in one call to compiled code.

    The first LSTM reads from the first word of a row, the second one from the last.

    Args:
        lstms: of one direction or of both, frozen.
        words: the same for both, in the order of the text.
        mask: true at words, which come first in a row.
        states: of each direction; see `ElmoLstm.forward`.
        outputs: receives the outputs of each layer, the directions concatenated. Padding is not
            written.

    Returns:
        The final states of each direction; None if the compiled code does not read these rows.
    """
    is_frozen = not torch.is_grad_enabled() and not any(lstm.drops_inputs for lstm in lstms)
    stack = _stack(lstms) if is_frozen else None
    words = words.contiguous()
    if stack is None or not stack.supports(words) or not stack.supports(outputs):
        return None
    ends = [
        _copied(lstm, of_direction, len(words))
        for lstm, of_direction in zip(lstms, states, strict=True)
    ]
    stack.read(words, mask.cpu(), ends, outputs)
    return [tuple(LstmState(*end) for end in of_direction) for of_direction in ends]


def _copied(
    lstm: ElmoLstm, states: tuple[LstmState, ...], num_rows: int
) -> list[tuple[Tensor, Tensor]]:
    """Return contiguous float32 copies of the states of each layer; zeros when empty."""
    cells = cast(Sequence[ProjectedLstm], lstm.cells)
    copied = partial(
        torch.Tensor.to, dtype=torch.float32, copy=True, memory_format=torch.contiguous_format
    )
    return [
        (copied(hidden), copied(memory))
        for hidden, memory in states or [cell.zero_state(num_rows) for cell in cells]
    ]


def _stack(lstms: Sequence[ElmoLstm]) -> PackedStack | None:
    cells = [cast(Sequence[ProjectedLstm], lstm.cells) for lstm in lstms]
    packed = [[cell.packed() for cell in each] for each in cells]
    complete = [[layer for layer in each if layer is not None] for each in packed]
    if complete != packed or len({layer.sizes for each in complete for layer in each}) != 1:
        return None
    (first, *_), has_skip = cells[0], lstms[0].use_skip_connections
    return PackedStack(complete, has_skip, first.cell_clip, first.projection_clip)
