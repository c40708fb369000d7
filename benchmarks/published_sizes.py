"""The published sizes of biLMs, with random weights: a speed does not depend on their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse

SIZES = ("original", "medium", "small")
_FILE = Path(__file__).parents[1] / "experiments/lib/bilm_sizes.libsonnet"


def published_size(size: str) -> dict[str, Any]:
    """Return the token encoder and the context layers of a size, as a config has them."""
    parts: dict[str, Any] = Config.load(_FILE).raw[size]
    return parts


def write_random_bilm(size: str, directory: Path, *, seed: int = 0) -> None:
    """Write a biLM of a published size."""
    torch.manual_seed(seed)
    save_bilm(parse(BiLm, published_size(size), source=str(_FILE)).build(), directory)
