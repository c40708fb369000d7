"""Stacked highway LSTMs with alternating directions."""

from __future__ import annotations

from typing import Annotated, final

from annotated_types import Ge, Lt
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Dim, Local, NumLayers, require_size
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.nn.highway_lstm import HighwayLstm
from elmo_framework.nn.packing import Packing


@final
@Encoder.register("alternating_lstm")
class AlternatingLstm(Encoder):
    """Stacked highway LSTMs: the first reads forward, the second backward, and so on.

    h_l = HighwayLSTM_l(h_(l-1)), forward where l is odd and backward where it is even (He et al.
    2017, section 2.1).

    Args:
        hidden_size: output dimension of each layer.
        num_layers: number of layers.
        recurrent_dropout_probability: dropout rate of the hidden state between words, with the
            same mask at each word of a row.
        use_highway: whether each layer adds a gated product of its input to its output.
        use_input_projection_bias: whether that product has a bias.
    """

    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Dim,
        num_layers: NumLayers,
        recurrent_dropout_probability: Annotated[float, Ge(0), Lt(1)] = 0.0,
        use_highway: bool = True,
        use_input_projection_bias: bool = True,
        input_size: int | None = None,
    ) -> None:
        super().__init__()
        require_size("input_size", input_size, inferred=input_dim)
        self.input_dim, self.output_dim = input_dim, hidden_size
        self.layers = nn.ModuleList(
            HighwayLstm(
                hidden_size if layer else input_dim,
                hidden_size,
                is_backward=layer % 2 == 1,
                recurrent_dropout=recurrent_dropout_probability,
                use_highway=use_highway,
                has_carry_bias=use_input_projection_bias,
            )
            for layer in range(num_layers)
        )

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        packing = Packing.of(mask)
        words = packing.pack(inputs)
        for layer in self.layers:
            words = layer(words, packing.sizes)
        return packing.unpack(words)
