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
from elmo_framework.config.load import Config
from elmo_framework.config.plugins import load_plugins
from elmo_framework.data.batch import to_device
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.model.model import Model
from elmo_framework.training.evaluator import autocast
from elmo_framework.training.options import GradientDescent
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
    device = torch.device(arguments.device)
    training = Training(_experiment(arguments), device)
    updates = training.updates
    num_updates = arguments.warm_up + arguments.steps
    batches = list(islice(training.batches(), num_updates))
    phases = np.array([updates.update(batch) for batch in batches])[arguments.warm_up :]
    num_tokens = sum(batch.num_tokens for batch in batches[arguments.warm_up :])
    report(
        bench="head_step",
        config=arguments.config,
        device=device_name(device),
        torch=torch.__version__,
        threads=arguments.threads,
        step_ms=_milliseconds(phases.sum(1)),
        tokens_per_s=round(num_tokens / float(phases.sum()), 2),
        loss=updates.loss,
        parameters=sum(held.numel() for held in updates.parameters),
        **{f"{name}_ms": _milliseconds(phases[:, at]) for at, name in enumerate(Phases._fields)},
    )
    return 0


class Updates:
    """What changes the weights of a model, a batch after the other.

    Args:
        model: built, its parts prepared.
        options: of its training.
        device: where the model is.

    Attributes:
        parameters: those that are trained.
        loss: of the last update.
    """

    def __init__(self, model: Model[Any], options: GradientDescent, device: torch.device) -> None:
        self._model, self._options, self._device = model.train(), options, device
        self.parameters = [held for held in model.parameters() if held.requires_grad]
        self._optimizer = options.optimizer.create(self.parameters)
        self.loss = float("nan")

    def update(self, batch: Any) -> Phases:
        """Make one update."""
        times = [now(self._device)]
        with autocast(self._device, self._options.precision):
            loss = self._model(batch).loss
        penalty = self._model.penalty()
        total = loss if penalty is None else loss + penalty
        times.append(now(self._device))
        total.backward()
        times.append(now(self._device))
        clip_norm(self.parameters, self._options.grad_norm or math.inf)
        if self._options.grad_clipping is not None:
            clip_values(self.parameters, self._options.grad_clipping)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        times.append(now(self._device))
        self.loss = total.item()
        return Phases(*np.diff(times).tolist())


class Training:
    """A model on the data of its experiment.

    Args:
        experiment: whose data is read here.
        device: where the model is.

    Attributes:
        updates: of the model.
    """

    def __init__(self, experiment: Experiment, device: torch.device) -> None:
        assembly = Assembly.build(experiment, device=device)
        assembly.precompute()
        self._device = device
        self._source = assembly.training_source()
        self.updates = Updates(assembly.model, experiment.trainer, device)

    def batches(self) -> Iterator[Any]:
        """Yield batches of one epoch after the other, on the device."""
        while True:
            for batch in self._source.batches():
                yield to_device(batch, self._device)


def _experiment(arguments: Namespace) -> Experiment:
    components.load()
    config = Config.load(arguments.config, overrides=arguments.overrides)
    load_plugins(config.plugins, asked_by=config.source)
    _, experiment = check_config(config).unwrap()
    return experiment


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
