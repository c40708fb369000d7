"""Base classes for encoders and poolers with PyTorch's recurrent networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated

from annotated_types import Ge, Lt
from jaxtyping import Bool, Float
from torch import Tensor, nn

from elmo_framework.config.types import Dim, Local, NumLayers, require_size
from elmo_framework.encoders.encoder import Encoder
from elmo_framework.nn.recurrent import read_rows


class Recurrent(nn.Module, ABC):
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
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.0,
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

    def read(
        self, inputs: Float[Tensor, "batch tokens input_dim"], mask: Bool[Tensor, "batch tokens"]
    ) -> tuple[Float[Tensor, "batch tokens output_dim"], Float[Tensor, "batch output_dim"]]:
        network = self.get_submodule(self._name)
        assert isinstance(network, nn.LSTM | nn.GRU)
        return read_rows(network, inputs, mask)

    @property
    def _name(self) -> str:
        return self.kind.__name__.lower()


class RecurrentEncoder(Recurrent, Encoder):
    """A recurrent network as an encoder: the outputs of its top layer."""

    def forward(
        self,
        inputs: Float[Tensor, "batch tokens input_dim"],
        mask: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "batch tokens output_dim"]:
        outputs, _ = self.read(inputs, mask)
        return outputs
