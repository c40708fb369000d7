"""Torch's recurrent networks on padded rows."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Reading(NamedTuple):
    """What a recurrent network computes.

    Attributes:
        outputs: of the top layer at each word, zero at padding.
        last: the state of the top layer after the last word that each direction reads, zero
            for a row without words.
    """

    outputs: Float[Tensor, "batch tokens output_dim"]
    last: Float[Tensor, "batch output_dim"]


def read_packed(
    network: nn.LSTM | nn.GRU,
    inputs: Float[Tensor, "batch tokens input_dim"],
    mask: Bool[Tensor, "batch tokens"],
) -> Reading:
    """Read rows whose words come first; a row may have none."""
    # Packing refuses rows without words; theirs are read as one word and set to zero below.
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    read, state = network(packed)
    outputs, _ = pad_packed_sequence(read, batch_first=True, total_length=inputs.shape[1])
    hidden = state[0] if isinstance(state, tuple) else state  # layers*directions batch hidden_size
    top = hidden[-2:] if network.bidirectional else hidden[-1:]
    last = top.transpose(0, 1).flatten(start_dim=1)
    return Reading(outputs * mask[:, :, None], last * mask.any(dim=1, keepdim=True))
