"""A line about work that takes longer than it need."""

from __future__ import annotations

import torch

from elmo_framework import console
from elmo_framework.kernels.compiler import slow_path_reason
from elmo_framework.training.process_group import ProcessGroup


def say_if_slow(device: torch.device, group: ProcessGroup) -> None:
    """Say once for all processes that PyTorch stands in for compiled functions, and why.

    Args:
        device: what computes; compiled functions are for processors.
        group: the processes.
    """
    if device.type == "cpu" and group.is_first:
        reason = slow_path_reason()
        if reason is not None:
            console.info(f"LSTM steps are computed by PyTorch, which is slower: {reason}")
