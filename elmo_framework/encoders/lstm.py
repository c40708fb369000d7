"""Torch's LSTM as an encoder and as a pooler."""

from __future__ import annotations

from typing import Annotated, final

from annotated_types import Ge, Gt, Lt
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.common.component import Local
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.pooler import Pooler
from elmo_framework.encoders.recurrent import RecurrentEncoder, recurrent_network
from elmo_framework.nn.recurrent import read_rows


@final
@Encoder.register("lstm")
class LstmEncoder(RecurrentEncoder):
    """An LSTM: the outputs of its top layer, those of both directions one after the other.

    Args:
        input_dim: the width of the vectors that it will be given.
        hidden_size: the width of one direction.
        num_layers: how many layers there are; each reads both directions of the one below.
        bidirectional: whether a second LSTM reads each row from its end.
        dropout: the share of values dropped between the layers.
        input_size: checked against the width that arrives, when it is stated.
    """

    kind = nn.LSTM


@final
@Pooler.register("lstm")
class LstmPooler(Pooler):
    """An LSTM's state after the last word, that of each direction one after the other.

    Args:
        input_dim: the width of the vectors that it will be given.
        hidden_size: the width of one direction.
        num_layers: how many layers there are; the state is that of the top one.
        bidirectional: whether a second LSTM reads each row from its end.
        dropout: the share of values dropped between the layers.
        input_size: checked against the width that arrives, when it is stated.
    """

    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Annotated[int, Gt(0)],
        num_layers: Annotated[int, Gt(0)] = 1,
        bidirectional: bool = False,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
        input_size: int | None = None,
    ) -> None:
        super().__init__()
        self.output_dim = hidden_size * (2 if bidirectional else 1)
        self.lstm = recurrent_network(
            nn.LSTM,
            input_dim,
            hidden_size=hidden_size,
            num_layers=num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            input_size=input_size,
        )

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch output_dim"]:
        """Pool sequences."""
        return read_rows(self.lstm, inputs, mask).last
