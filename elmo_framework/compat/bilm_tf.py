"""Recognize the training options of bilm-tf where a config is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.errors import ConfigError, Problem

_MARKS = ("lstm", "n_epochs", "unroll_steps")


def refuse_options(raw: Mapping[str, Any], source: str) -> None:
    """Raise ConfigError, which shows the way, for the `options.json` of a training by bilm-tf."""
    if not all(key in raw for key in _MARKS):
        return
    message = (
        "these are training options of bilm-tf, without the data; write a config that imports "
        "them with bilm_tf.libsonnet, as docs/pretraining.md shows (options of bilm-tf)"
    )
    raise ConfigError(source, [Problem("", message)])
