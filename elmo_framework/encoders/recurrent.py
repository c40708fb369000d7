"""Torch's recurrent networks, as the members of the families here use them."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from elmo_framework.common.sizes import require_size

NetworkT = TypeVar("NetworkT", nn.LSTM, nn.GRU)


def recurrent_network(
    kind: type[NetworkT],
    input_dim: int,
    *,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    dropout: float,
    input_size: int | None,
) -> NetworkT:
    """Return a network over batches whose first dimension is the batch.

    Raises:
        ValueError: `input_size` is stated and is not `input_dim`, or the dropout, which acts
            between layers, would do nothing.
    """
    require_size("input_size", input_size, inferred=input_dim)
    if dropout and num_layers == 1:
        raise ValueError(
            f"dropout is {dropout}, but acts between layers and num_layers is 1; "
            "set num_layers, or remove dropout"
        )
    return kind(
        input_dim,
        hidden_size,
        num_layers=num_layers,
        bidirectional=bidirectional,
        dropout=dropout,
        batch_first=True,
    )
