"""A sigmoid that gives a row the same bits, whatever is computed with it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from elmo_framework.kernels.backend import is_traced, uses_cpu_code

_VECTORS = 32
"""The number of floats that PyTorch computes at once, at most."""

_ONE_THREAD = 32_768
"""From so many numbers on, PyTorch gives each thread a part of them."""


def row_wise_sigmoid(x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
    """Return the sigmoid of each number, with the same bits for a row among any others.

    On CPUs, PyTorch computes the last numbers of a tensor, or of the part of a thread, which do not
    fill its vectors, in another way (its `tanh` does not). Rows are padded for that, and without
    gradients computed by one thread.
    """
    if not uses_cpu_code(x) or is_traced():
        return torch.sigmoid(x)
    dim = x.shape[-1]
    missing = -dim % _VECTORS
    padded = functional.pad(x, (0, missing)) if missing else x
    if torch.is_grad_enabled() or padded.numel() < _ONE_THREAD:
        return torch.sigmoid(padded)[..., :dim]
    rows = padded.reshape(-1, dim + missing)
    outputs, num_rows = torch.empty_like(rows), max(1, (_ONE_THREAD - 1) // rows.shape[1])
    for some, out in zip(torch.split(rows, num_rows), torch.split(outputs, num_rows), strict=True):
        torch.sigmoid(some, out=out)
    return outputs[:, :dim].view(x.shape)
