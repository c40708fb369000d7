"""PyTorch's LSTM and GRU as encoders and poolers, and stacks of highway LSTMs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast, final

import torch
from torch import nn

from elmo_framework.config.types import Dim, DropoutRate, Local, NumLayers, require_size
from elmo_framework.encoders.encoder import Encoded, Encoder, Inputs, Mask
from elmo_framework.encoders.pooler import Pooled, Pooler
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.kernels.product import Precision
from elmo_framework.nn.frozen_lstm import FrozenLstm
from elmo_framework.nn.highway_lstm import HighwayLstm
from elmo_framework.nn.masking import VariationalDropout
from elmo_framework.nn.packing import Packing
from elmo_framework.nn.part import TensorPart
from elmo_framework.nn.recurrent import read_rows

DropoutPlace: TypeAlias = Literal["output", "recurrence"]


class Recurrent(TensorPart, ABC):
    """One of PyTorch's recurrent networks, a submodule called `lstm` or `gru`.

    Args:
        input_dim: dimension of the input vectors.
        hidden_size: output dimension of one direction.
        num_layers: number of layers; each reads both directions of the one below.
        bidirectional: whether a second network reads each row from its end.
        dropout: dropout rate between layers.
        input_size: if set, must equal the dimension of the input.

    Attributes:
        output_dim: output dimension of both directions, which are concatenated.

    Raises:
        ValueError: `input_size` is not `input_dim`, or there is a dropout rate but only one layer.
    """

    _frozen: FrozenLstm | None = None

    @property
    @abstractmethod
    def kind(self) -> type[nn.LSTM] | type[nn.GRU]:
        """Class of the network."""

    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Dim,
        num_layers: NumLayers = 1,
        bidirectional: bool = False,
        dropout: DropoutRate = 0.0,
        input_size: int | None = None,
    ) -> None:
        super().__init__()
        require_size("input_size", input_size, inferred=input_dim)
        if dropout and num_layers == 1:
            raise ValueError(
                f"dropout is {dropout}, but acts between layers and num_layers is 1; "
                "set num_layers, or remove dropout"
            )
        self.input_dim = input_dim
        self.output_dim = hidden_size * (2 if bidirectional else 1)
        network = self.kind(
            input_dim,
            hidden_size,
            num_layers=num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            batch_first=True,
        )
        self.add_module(self._name, network)

    def read(self, inputs: Inputs, mask: Mask) -> tuple[Encoded, Pooled]:
        if self._frozen is not None and not self.training and not torch.is_grad_enabled():
            result = self._frozen.read(inputs, mask)
            if result is not None:
                return result
        return read_rows(self._network, inputs, mask)

    def freeze(self, precision: Precision) -> None:
        network = self._network
        self._frozen = FrozenLstm.of(network) if isinstance(network, nn.LSTM) else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the packed weights: those of a copy may change."""
        return {**self.__dict__, "_frozen": None}

    @property
    def _network(self) -> nn.LSTM | nn.GRU:
        network = self.get_submodule(self._name)
        assert isinstance(network, nn.LSTM | nn.GRU)
        return network

    @property
    def _name(self) -> str:
        return self.kind.__name__.lower()


class RecurrentEncoder(Recurrent, Encoder):
    """A recurrent network as an encoder: the outputs of its top layer."""

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        outputs, _ = self.read(inputs, mask)
        return outputs


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


class RecurrentPooler(Recurrent, Pooler):
    """A recurrent network as a pooler: the final states of its top layer.

    Args:
        num_layers: number of layers; the states are those of the top one.
    """

    def forward(self, inputs: Inputs, mask: Mask) -> Pooled:
        _, last = self.read(inputs, mask)
        return last


@final
@Pooler.register("lstm")
class LstmPooler(RecurrentPooler):
    """The final states of an LSTM's top layer, those of both directions concatenated."""

    kind = nn.LSTM


@final
@Pooler.register("gru")
class GruPooler(RecurrentPooler):
    """The final states of a GRU's top layer, those of both directions concatenated."""

    kind = nn.GRU


@final
@Encoder.register("alternating_lstm")
class AlternatingLstm(Encoder):
    """Stacked highway LSTMs: the first reads forward, the second backward, and so on.

    h_l = HighwayLSTM_l(h_(l-1)), forward where l is odd and backward where it is even (He et al.
    2017, section 2).

    Args:
        hidden_size: output dimension of each layer.
        num_layers: number of layers.
        recurrent_dropout_probability: dropout rate of the output of each layer, with the same
            mask at each word of a row.
        recurrent_dropout_place: where that is: of the `output`, which the next word and the next
            layer read (He et al. 2017, section 2), or, as in AllenNLP, of the `recurrence` only,
            which the next word reads.
        use_highway: whether each layer adds a gated product of its input to its output.
        use_input_projection_bias: whether that product has a bias.
    """

    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Dim,
        num_layers: NumLayers,
        recurrent_dropout_probability: DropoutRate = 0.0,
        recurrent_dropout_place: DropoutPlace = "output",
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
                masks_output=recurrent_dropout_place == "output",
                use_highway=use_highway,
                has_carry_bias=use_input_projection_bias,
            )
            for layer in range(num_layers)
        )

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        layers = cast(Iterable[HighwayLstm], self.layers)
        if not uses_cpu_code(inputs):  # An accelerator would wait for the lengths.
            for layer in layers:
                inputs = layer.read_rows(inputs, mask)
            return inputs
        packing = Packing.of(mask)
        words = packing.pack(inputs)
        for layer in layers:
            words = layer(words, packing.sizes)
        return packing.unpack(words)


@final
@Encoder.register("stacked_bidirectional_lstm")
class StackedBidirectionalLstm(Encoder):
    """Stacked highway LSTMs: each layer reads both directions of the one below.

    h_l = [forward_l(h_(l-1)); backward_l(h_(l-1))], where both are highway LSTMs.

    Args:
        hidden_size: output dimension of one direction.
        num_layers: number of layers.
        recurrent_dropout_probability: dropout rate of the output of each layer, with the same
            mask at each word of a row.
        recurrent_dropout_place: where that is: of the `output`, which the next word and the next
            layer read (He et al. 2017, section 2), or, as in AllenNLP, of the `recurrence` only,
            which the next word reads.
        layer_dropout_probability: rate of another variational dropout of the output of each layer
            but the last, which only the next layer reads.
        use_highway: whether each direction adds a gated product of its input to its output.
    """

    def __init__(
        self,
        input_dim: Local[int],
        hidden_size: Dim,
        num_layers: NumLayers,
        recurrent_dropout_probability: DropoutRate = 0.0,
        recurrent_dropout_place: DropoutPlace = "output",
        layer_dropout_probability: DropoutRate = 0.0,
        use_highway: bool = True,
        input_size: int | None = None,
    ) -> None:
        super().__init__()
        require_size("input_size", input_size, inferred=input_dim)
        self.input_dim, self.output_dim = input_dim, 2 * hidden_size
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(
                HighwayLstm(
                    self.output_dim if layer else input_dim,
                    hidden_size,
                    is_backward=is_backward,
                    recurrent_dropout=recurrent_dropout_probability,
                    masks_output=recurrent_dropout_place == "output",
                    use_highway=use_highway,
                    has_carry_bias=False,
                )
                for layer in range(num_layers)
            )
            for is_backward in (False, True)
        )
        self.layer_dropout = VariationalDropout(layer_dropout_probability)

    def forward(self, inputs: Inputs, mask: Mask) -> Encoded:
        # As in AlternatingLstm.
        packing = Packing.of(mask) if uses_cpu_code(inputs) else None
        pairs = zip(self.forward_layers, self.backward_layers, strict=True)
        for number, both in enumerate(cast(Iterable[tuple[HighwayLstm, ...]], pairs)):
            rows = self.layer_dropout(inputs) if number else inputs
            if packing is None:
                inputs = torch.cat([layer.read_rows(rows, mask) for layer in both], dim=2)
            else:
                words = packing.pack(rows)
                outputs = torch.cat([layer(words, packing.sizes) for layer in both], dim=1)
                inputs = packing.unpack(outputs)
        return inputs
