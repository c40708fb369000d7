"""What the stages of `gpu.py` share."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from clock import device_name
from measuring import report

from elmo_framework.config.load import Config
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.train import build_trainer
from elmo_framework.training.cuda_graph import RecordedUpdate
from elmo_framework.training.process_group import choose_device
from elmo_framework.training.trainer import Trainer

Changes = Mapping[str, Any]

ROOT = Path(__file__).parents[1]

TOLERANCE = 1e-3
"""The largest relative difference between losses of two devices in float32."""

RECORDABLE: Changes = {"trainer.optimizer": {"type": "adagrad", "lr": 0.2}}
"""Updates of other optimizers are not recorded as CUDA graphs."""

WITHOUT_CHANCE: Changes = {
    "model.dropout": 0.0,
    "model.context_layers.dropout": 0.0,
    "model.state_reset_rate": 0.0,
}
SEED = 13370


def pretraining(arguments: Namespace, changes: Changes, *, device: str) -> Trainer:
    """Return what `elmo train` would train a biLM with, without a run."""
    config = Config.load(
        config_of(arguments.size),
        overrides=overrides(
            {**texts(arguments), "trainer.device": device, **changes},
        ),
    )
    return trainer_of(config, device)


def trainer_of(config: Config, device: str) -> Trainer:
    """Return what would train a config, its cached layers computed."""
    _, experiment = check_config(config).unwrap()
    assembly = Assembly.build(experiment, device=choose_device(device))
    assembly.precompute()
    return build_trainer(assembly, evaluator=None)


def config_of(size: str) -> Path:
    """Return the config of the pretraining of a size."""
    return ROOT / "experiments/pretrain" / f"{size}.jsonnet"


def texts(arguments: Namespace) -> Changes:
    """Return what sets the texts of a pretraining."""
    return {
        "train_data_path": str(arguments.train),
        "validation_data_path": str(arguments.validation),
    }


def overrides(changes: Changes) -> list[str]:
    """Return changes as they follow `-o` on the command line."""
    return [f"{key}={json.dumps(value)}" for key, value in changes.items()]


def num_recorded(trainer: Trainer) -> int:
    """Return how many forms of updates are recorded as CUDA graphs."""
    update = trainer._recorded_update
    return update.num_recorded if isinstance(update, RecordedUpdate) else 0


def largest_difference(losses: list[float], expected: list[float]) -> float:
    """Return the largest relative difference between losses."""
    return max(abs(found / each - 1) for found, each in zip(losses, expected, strict=True))


def report_stage(arguments: Namespace, stage: str, **figures: Any) -> None:
    """Write a line of JSON."""
    report(
        **{
            "bench": "gpu",
            "stage": stage,
            "size": arguments.size,
            "device": device_name(torch.device(arguments.device)),
            "torch": torch.__version__,
            **figures,
        }
    )
