"""The time of work that a GPU may still be doing."""

from __future__ import annotations

import time

import torch


def now(device: torch.device) -> float:
    """Return seconds, once the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def device_name(device: torch.device) -> str:
    """Return what a report calls a device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
