"""Torch's GRU as an encoder."""

from __future__ import annotations

from typing import final

from torch import nn

from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.recurrent import RecurrentEncoder


@final
@Encoder.register("gru")
class GruEncoder(RecurrentEncoder):
    """A GRU: the outputs of its top layer, those of both directions one after the other.

    Args:
        input_dim: the width of the vectors that it will be given.
        hidden_size: the width of one direction.
        num_layers: how many layers there are; each reads both directions of the one below.
        bidirectional: whether a second GRU reads each row from its end.
        dropout: the share of values dropped between the layers.
        input_size: checked against the width that arrives, when it is stated.
    """

    kind = nn.GRU
