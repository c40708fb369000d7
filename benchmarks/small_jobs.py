"""The shipped configs at a size of seconds, on the demo's sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
DATA = _ROOT / "experiments/demo"
"""The folder of the demo's sentences."""


@dataclass(frozen=True)
class Job:
    """A training: a config and what is changed in it.

    Attributes:
        name: what reports call it.
        config: its path, from the root of the project.
        changes: values by their path in the config.
    """

    name: str
    config: str
    changes: Mapping[str, Any]

    def arguments(self, directory: Path, *flags: str) -> list[str]:
        """Return the words that follow `elmo` on the command line."""
        overrides = [f"{path}={json.dumps(value)}" for path, value in self.changes.items()]
        words = [word for override in overrides for word in ("-o", override)]
        return ["train", str(_ROOT / self.config), "-s", str(directory), *words, *flags]


def pretraining(trainer: Mapping[str, Any]) -> Job:
    """Return the pretraining of a biLM of a few thousand weights.

    Args:
        trainer: what is changed in that block of the config.
    """
    changes = {
        "dataset_reader.max_instances": 60,
        "train_data_path": str(DATA / "lm_train.txt"),
        "validation_data_path": str(DATA / "lm_valid.txt"),
        "model.token_encoder.filters": [[1, 4], [2, 8]],
        "model.token_encoder.projection_dim": 8,
        "model.context_layers.cell_size": 12,
        "model.context_layers.projection_dim": 8,
        "model.num_samples": 20,
        "data_loader.batch_size": 4,
        "data_loader.unroll_steps": 10,
    }
    return Job("bilm", "experiments/pretrain/demo.jsonnet", {**changes, **_inside(trainer)})


def tagging(bilm: Path, trainer: Mapping[str, Any]) -> Job:
    """Return the training of a tagger as small.

    Args:
        bilm: the run of the biLM that it reads.
        trainer: what is changed in that block of the config.
    """
    changes = {
        "dataset_reader.max_instances": 40,
        "train_data_path": str(DATA / "train.txt"),
        "validation_data_path": str(DATA / "valid.txt"),
        "model.embedder.token_embedders.elmo.bilm": str(bilm),
        "model.embedder.token_embedders.tokens.embedding_dim": 8,
        "model.embedder.token_embedders.tokens.pretrained_file": None,
        "model.embedder.token_embedders.tokens.min_count": 2,
        "model.embedder.token_embedders.token_characters.encoder.num_filters": 8,
        "model.encoder.hidden_size": 8,
        "data_loader.batch_size": 8,
    }
    return Job("tagger", "experiments/ner/elmo.jsonnet", {**changes, **_inside(trainer)})


def _inside(trainer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes by their path; a CPU repeats its results bit by bit."""
    return {f"trainer.{key}": value for key, value in {"device": "cpu", **trainer}.items()}
