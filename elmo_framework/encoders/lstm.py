"""Torch's LSTM as an encoder and as a pooler."""

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
    """An LSTM: the outputs of its top layer, those of both directions one after the other."""

    kind = nn.LSTM


@final
@Pooler.register("lstm")
class LstmPooler(Recurrent, Pooler):
    """An LSTM's state after the last word, that of each direction one after the other.

    Args:
        num_layers: how many layers there are; the state is that of the top one.
    """

    kind = nn.LSTM

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        """Pool sequences."""
        return self.read(inputs, mask).last
