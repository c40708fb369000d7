"""Torch's GRU as an encoder."""

from __future__ import annotations

from typing import final

from torch import nn

from elmo_framework.encoders.encoder import Encoder
from elmo_framework.encoders.recurrent import RecurrentEncoder


@final
@Encoder.register("gru")
class GruEncoder(RecurrentEncoder):
    """A GRU: the outputs of its top layer, those of both directions one after the other."""

    kind = nn.GRU
