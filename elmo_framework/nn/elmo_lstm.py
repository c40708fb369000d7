"""LSTM layers of one direction of a biLM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from elmo_framework.nn.lstm_layer import LstmState
from elmo_framework.nn.packing import Packing
from elmo_framework.nn.projected_lstm import ProjectedLstm


class ElmoLstm(nn.Module):
    """Layers of `ProjectedLstm`, read from the first word to the last.

    y_1 = LSTM_1(d(x)); y_l = LSTM_l(d(y_(l-1))) + d(y_(l-1)), where d is dropout and the sum is
    the skip connection: it is outside the recurrence, is not clipped, and layer 1 has none
    (bilm-tf, training.py).

    Args:
        input_dim: dimension of x.
        cell_size: dimension of the cell state.
        projection_dim: dimension of the output; `cell_size` by default.
        num_layers: number of layers.
        cell_clip: maximum absolute value of the cell state.
        projection_clip: maximum absolute value of a projected output, before the skip connection.
        use_skip_connections: whether there are skip connections.
        dropout: dropout rate of the input of each layer; a new mask at each step.
    """

    def __init__(
        self,
        input_dim: int,
        cell_size: int,
        *,
        projection_dim: int | None = None,
        num_layers: int = 1,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        use_skip_connections: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_layers, self.output_dim = num_layers, projection_dim or cell_size
        self._use_skip_connections, self._dropout = use_skip_connections, dropout
        self.cells = nn.ModuleList(
            ProjectedLstm(
                self.output_dim if layer else input_dim,
                cell_size,
                projection_dim=projection_dim,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
            )
            for layer in range(num_layers)
        )

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
        lstms = cast(Sequence[ProjectedLstm], self.cells)
        packing = Packing.of(mask).to(inputs.device)
        words, layers, ends = packing.pack(inputs), [], []
        for layer, lstm in enumerate(lstms):
            words = functional.dropout(words, self._dropout, self.training)
            start = states[layer] if states else lstm.zero_state(len(inputs))
            outputs, end = lstm(words, packing.sizes, LstmState(*map(packing.sort, start)))
            has_skip = self._use_skip_connections and layer > 0
            words = outputs + words if has_skip else outputs
            layers.append(packing.unpack(words))
            ends.append(LstmState(*map(packing.restore, end)))
        return torch.stack(layers), tuple(ends)
