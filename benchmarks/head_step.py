"""How fast the head of a configuration is trained: whole updates on its own data.

    python benchmarks/head_step.py experiments/ner/elmo.jsonnet -o dataset_reader.max_instances=2000

Batches are the training's own, put together beforehand: an update is forward, backward, and the
clipping with the optimizer. The layers of a frozen ELMo are computed beforehand too, as they are
for training, so that the update reads them from its store (`-o ...elmo.cache=memory` for memory).
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from clock import device_name, now
from measuring import add_threads_argument, report
from numpy.typing import NDArray

from elmo_framework import components
from elmo_framework.common.config import Config
from elmo_framework.common.plugins import load_plugins
from elmo_framework.data.batch import to_device
from elmo_framework.data.source import Share
from elmo_framework.experiment.data_sets import count_vocabularies, prepare_model
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.preflight import check
from elmo_framework.experiment.train import build_model, build_trainer
from elmo_framework.training.evaluator import autocast
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.sparse_gradients import clip_norm, clip_values

_MILLISECONDS = 1000


class Phases(NamedTuple):
    """The seconds of one update.

    Attributes:
        forward: to the loss.
        backward: to the gradients.
        optimizer: clipping the gradients and changing the weights.
    """

    forward: float
    backward: float
    optimizer: float


def main() -> int:
    """Measure and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    training = Training(_experiment(arguments), torch.device(arguments.device))
    num_updates = arguments.warm_up + arguments.steps
    batches = list(islice(training.batches(), num_updates))
    phases = np.array([training.update(batch) for batch in batches])[arguments.warm_up :]
    num_tokens = sum(batch.num_tokens for batch in batches[arguments.warm_up :])
    report(
        bench="head_step",
        config=arguments.config,
        device=device_name(training.device),
        torch=torch.__version__,
        threads=arguments.threads,
        step_ms=_milliseconds(phases.sum(1)),
        tokens_per_s=round(num_tokens / float(phases.sum()), 2),
        loss=training.loss,
        parameters=sum(held.numel() for held in training.parameters),
        **{f"{name}_ms": _milliseconds(phases[:, at]) for at, name in enumerate(Phases._fields)},
    )
    return 0


class Training:
    """A model on the data of its experiment.

    Args:
        experiment: whose data is read here.
        device: where the model is.

    Attributes:
        parameters: those that are trained.
        loss: of the last update.
    """

    def __init__(self, experiment: Experiment, device: torch.device) -> None:
        vocabularies = count_vocabularies(experiment, experiment.model.factory)
        self.device, self._model = device, build_model(experiment, vocabularies, device).train()
        prepare_model(experiment, self._model, device)
        self._trainer = build_trainer(
            experiment,
            self._model,
            vocabularies,
            evaluator=None,
            group=ProcessGroup(Share()),
            device=device,
        )
        self.parameters = [held for held in self._model.parameters() if held.requires_grad]
        self.loss = float("nan")

    def batches(self) -> Iterator[Any]:
        """Yield batches of one epoch after the other, on the device."""
        while True:
            for batch in self._trainer.source.batches():
                yield to_device(batch, self.device)

    def update(self, batch: Any) -> Phases:
        """Make one update."""
        options, optimizer = self._trainer.options, self._trainer.optimizer
        times = [now(self.device)]
        with autocast(self.device, options.precision):
            loss = self._model(batch).loss
        penalty = self._model.penalty()
        total = loss if penalty is None else loss + penalty
        times.append(now(self.device))
        total.backward()
        times.append(now(self.device))
        clip_norm(self.parameters, options.grad_norm or math.inf)
        if options.grad_clipping is not None:
            clip_values(self.parameters, options.grad_clipping)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(now(self.device))
        self.loss = total.item()
        return Phases(*np.diff(times).tolist())


def _experiment(arguments: Namespace) -> Experiment:
    components.load()
    config = Config.load(arguments.config, overrides=arguments.overrides)
    load_plugins(config.plugins, asked_by=config.source)
    return check(config).build()


def _milliseconds(seconds: NDArray[np.float64]) -> float:
    """Return the mean: batches differ in size, and so a median would be of one size only."""
    return round(float(seconds.mean()) * _MILLISECONDS, 2)


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure how fast the head of a configuration is trained.")
    parser.add_argument("config", help="a jsonnet or JSON file")
    parser.add_argument(
        "-o", "--overrides", action="append", default=[], help="dotted.key=VALUE, as in elmo train"
    )
    parser.add_argument("--steps", type=int, default=20, help="updates that are measured (20)")
    parser.add_argument("--warm-up", type=int, default=3, help="updates before (3)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
