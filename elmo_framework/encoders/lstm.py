"""PyTorch's LSTM and GRU as encoders, and its LSTM as a pooler."""

from __future__ import annotations

from typing import final

from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.encoders.recurrent import Recurrent, RecurrentEncoder


@final
@Encoder.register("lstm")
class LstmEncoder(RecurrentEncoder):
    """An LSTM: the outputs of its top layer, those of both directions concatenated."""

    kind = nn.LSTM


@final
@Encoder.register("gru")
class GruEncoder(RecurrentEncoder):
    """A GRU: the outputs of its top layer, those of both directions concatenated."""

    kind = nn.GRU


@final
@Pooler.register("lstm")
class LstmPooler(Recurrent, Pooler):
    """The final states of an LSTM's top layer, those of both directions concatenated.

    Args:
        num_layers: number of layers; the states are those of the top one.
    """

    kind = nn.LSTM

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        _, last = self.read(inputs, mask)
        return last
