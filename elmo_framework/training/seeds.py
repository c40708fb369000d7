"""Seed all random generators, and save and restore their states."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def generator_states() -> dict[str, Any]:
    """Return the states of all generators, as tensors, numbers and lists of numbers."""
    version, internal, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    # Reading its generator in a CPU run would create a CUDA context and take memory of the GPU.
    is_on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {
        "python": [version, list(internal), gauss],
        "numpy": [
            name,
            torch.tensor(np.asarray(keys, dtype=np.int64)),
            position,
            has_gauss,
            cached,
        ],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if is_on_gpu else None,
    }


def load_generator_states(states: Mapping[str, Any]) -> None:
    """Restore the result of `generator_states`."""
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(states["torch"])
    # Of a checkpoint of a GPU; a CPU run that resumes from it creates no CUDA context either.
    if states["cuda"] is not None and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.set_rng_state(states["cuda"])
