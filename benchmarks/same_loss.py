"""The losses of a seeded 20-step run of a biLM and of a tagger on it; a refactoring keeps them.

They are compared with those in `same_loss.json`, which `--write` replaces: bit by bit on a
machine like the one that it was written on, with the same torch and as many threads, and
otherwise within a relative 1e-4, since products are then added up in another order.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch
from measuring import say
from small_jobs import Job, pretraining, tagging

from elmo_framework.commands.main import main as elmo
from elmo_framework.common.component import Injected
from elmo_framework.training.observer import Observer
from elmo_framework.training.progress import StepReport

_RECORD = Path(__file__).with_name("same_loss.json")
_TOLERANCE = 1e-4
_TRAINER: Mapping[str, Any] = {"num_steps": 20, "num_epochs": None, "callbacks": ["loss_log"]}

Losses = dict[str, list[float]]


@final
@Observer.register("loss_log")
class LossLog(Observer):
    """Writes the losses of all updates to `losses.json`, each as exact as it is.

    Args:
        directory: the folder of the run.
    """

    def __init__(self, directory: Injected[Path]) -> None:
        self._path = directory / "losses.json"
        self._losses: list[float] = []

    def step(self, report: StepReport) -> None:
        """Keep the loss."""
        self._losses.append(float(report.loss))

    def close(self) -> None:
        """Write what was kept."""
        self._path.write_text(json.dumps(self._losses))


def main() -> int:
    """Train, print the losses, and compare or write them; return 1 when they differ."""
    parser = ArgumentParser(description="Compare the losses of 20 steps with the recorded ones.")
    parser.add_argument("--write", action="store_true", help=f"record them in {_RECORD.name}")
    is_written = parser.parse_args().write
    torch.set_num_threads(1)
    losses = _losses()
    for name, values in losses.items():
        say("\n".join(f"{name} {step} {loss!r}" for step, loss in enumerate(values, 1)))
    if is_written:
        recorded = {"circumstances": _circumstances(), "losses": losses}
        _RECORD.write_text(json.dumps(recorded, indent=2) + "\n")
        return 0
    return _compare(losses, json.loads(_RECORD.read_text()))


def _losses() -> Losses:
    """Train both models; return their losses by the name of the job."""
    with tempfile.TemporaryDirectory() as folder:
        bilm, tagger = Path(folder) / "bilm", Path(folder) / "tagger"
        return {
            "bilm": _trained(pretraining(_TRAINER), bilm),
            "tagger": _trained(tagging(bilm, _TRAINER), tagger),
        }


def _trained(job: Job, directory: Path) -> list[float]:
    if code := elmo(job.arguments(directory)):
        sys.exit(code)
    losses: list[float] = json.loads((directory / "losses.json").read_text())
    return losses


def _compare(losses: Losses, recorded: Mapping[str, Any]) -> int:
    """Say where the losses differ from the recorded ones; return the exit code."""
    others = {
        name: f"{recorded['circumstances'].get(name)!r}, now {value!r}"
        for name, value in _circumstances().items()
        if recorded["circumstances"].get(name) != value
    }
    tolerance = _TOLERANCE if others else 0.0
    for name, change in others.items():
        say(f"recorded with {name} {change}: compared within a relative {_TOLERANCE:g}")
    differences = [
        f"{name}, step {step}: {loss!r}, recorded {before!r}"
        for name, values in losses.items()
        for step, (loss, before) in enumerate(zip(values, recorded["losses"][name], strict=True), 1)
        if not math.isclose(loss, before, rel_tol=tolerance)
    ]
    if differences:
        heading = "the losses have changed; if they should, run again with --write:"
        say("\n".join([heading, *differences]))
        return 1
    say(f"the losses are the recorded ones {'within the tolerance' if others else 'bit by bit'}")
    return 0


def _circumstances() -> dict[str, Any]:
    """Return what decides in which order a machine adds up."""
    return {
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    """Return the name of the processor's model."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


if __name__ == "__main__":
    sys.exit(main())
