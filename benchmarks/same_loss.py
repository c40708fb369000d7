"""The losses of a seeded 20-step run of a biLM and of a tagger on it; a refactoring keeps them.

They are compared with those in `same_loss.json`, which `--write` replaces: bit by bit on the type
of CPU that they were recorded on, with the same torch and C compiler, and otherwise within a
relative 1e-4, since products are then added up in another order.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import torch
from circumstances import circumstances
from measuring import say
from small_jobs import Job, pretraining, tagging

from elmo_framework.commands.main import main as elmo
from elmo_framework.config.types import Injected
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepReport

_RECORD = Path(__file__).with_name("same_loss.json")
_TOLERANCE = 1e-4
_TRAINER: Mapping[str, Any] = {"num_steps": 20, "num_epochs": None, "callbacks": ["loss_log"]}

Losses = dict[str, list[float]]


@final
@Callback.register("loss_log")
class LossLog(Callback):
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
    """Train, and compare the losses or write them; return 1 when they differ."""
    parser = ArgumentParser(description="Compare the losses of 20 steps with the recorded ones.")
    parser.add_argument("--write", action="store_true", help=f"record them in {_RECORD.name}")
    is_written = parser.parse_args().write
    torch.set_num_threads(1)
    losses, now = _losses(), circumstances()
    if is_written:
        recorded = {"circumstances": now, "losses": losses}
        _RECORD.write_text(json.dumps(recorded, indent=2) + "\n")
        say(f"recorded in {_RECORD}")
        return 0
    return compare(losses, now, json.loads(_RECORD.read_text()))


def _losses() -> Losses:
    """Train both models; return their losses by the name of the job."""
    with tempfile.TemporaryDirectory() as folder:
        # Layers that were computed before a change of the code must not hide it.
        os.environ["ELMO_CACHE_ROOT"] = str(Path(folder) / "cache")
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


def compare(losses: Losses, now: Mapping[str, Any], recorded: Mapping[str, Any]) -> int:
    """Print where losses differ from the recorded ones; return the exit code.

    Args:
        losses: of now, by the name of the job.
        now: the present circumstances.
        recorded: `losses` and `circumstances` as they were.
    """
    before = recorded["circumstances"]
    changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
    for name in changed:
        say(
            f"{name} was {before.get(name)!r} and is {now.get(name)!r}: losses are "
            f"compared within a relative {_TOLERANCE:g}"
        )
    differences = list(_differences(losses, recorded["losses"], _TOLERANCE if changed else 0.0))
    if differences:
        say("\n".join(["the losses have changed:", *differences]))
        say("if they should, record them again: python benchmarks/same_loss.py --write")
        return 1
    say(f"the losses are the recorded ones{' within the tolerance' if changed else ', bit by bit'}")
    return 0


def _differences(losses: Losses, before: Losses, tolerance: float) -> Iterator[str]:
    for name in sorted({*losses, *before}):
        values, recorded = losses.get(name, []), before.get(name, [])
        if len(values) != len(recorded):
            yield f"{name}: {len(values)} losses, recorded {len(recorded)}"
        for step, (loss, old) in enumerate(zip(values, recorded, strict=False), 1):
            if not math.isclose(loss, old, rel_tol=tolerance):
                yield f"{name}, step {step}: {loss!r}, recorded {old!r}"


if __name__ == "__main__":
    sys.exit(main())
