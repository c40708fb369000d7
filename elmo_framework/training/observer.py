"""The family of observers: they read what happens in training and never steer it."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Gt

from elmo_framework.common.component import Injected
from elmo_framework.common.files import write_text
from elmo_framework.common.registry import Registrable
from elmo_framework.training.progress import Progress, StepReport


class Observer(Registrable, ABC):
    """Is told what happens; each method does nothing unless a member says otherwise."""

    def start(self, progress: Progress) -> None:
        """Take note of where training starts; what was noted of later steps is cut off."""

    def step(self, report: StepReport) -> None:
        """Take note of an update."""

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Take note of an evaluation, by whose end `progress` counts."""

    def close(self) -> None:
        """Training has ended, well or badly."""


class Observers:
    """Several observers, told one after the other.

    Args:
        observers: in the order in which they are told.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def start(self, progress: Progress) -> None:
        """Tell where training starts."""
        for observer in self._observers:
            observer.start(progress)

    def step(self, report: StepReport) -> None:
        """Tell of an update."""
        for observer in self._observers:
            observer.step(report)

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Tell of an evaluation."""
        for observer in self._observers:
            observer.scores(progress, scores)

    def close(self) -> None:
        """Tell that training has ended."""
        for observer in self._observers:
            observer.close()


@final
class MetricsLog(Observer):
    """Writes one JSON line an evaluation to `metrics.jsonl`; every run has one, unasked.

    Args:
        directory: the folder of the run.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "metrics.jsonl"

    def start(self, progress: Progress) -> None:
        """Cut off the evaluations after the step that training starts from."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        kept = [line for line in lines if _step(line) <= progress.step]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._path, "".join(f"{line}\n" for line in kept))

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Add a line."""
        line = {"step": progress.step, "seconds": round(progress.seconds, 3), **scores}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


@final
@Observer.register("tensorboard")
class TensorBoard(Observer):
    """Writes TensorBoard events to `log/`: the figures of steps and of evaluations.

    Args:
        directory: the folder of the run.
        summary_interval: steps between two entries for steps.
    """

    def __init__(
        self, directory: Injected[Path], summary_interval: Annotated[int, Gt(0)] = 10
    ) -> None:
        self._directory, self._interval = directory / "log", summary_interval
        self._writer: Any = None
        self._last_seconds, self._num_tokens = 0.0, 0

    def start(self, progress: Progress) -> None:
        """Open the event file; TensorBoard drops what older ones hold of later steps."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._directory), purge_step=progress.step + 1)
        self._last_seconds = progress.seconds

    def step(self, report: StepReport) -> None:
        """Write loss, rate, gradient norm and tokens a second, every few steps."""
        self._num_tokens += report.num_tokens
        if report.step % self._interval:
            return
        seconds = max(report.seconds - self._last_seconds, 1e-9)
        figures = {
            "training/loss": float(report.loss),
            "training/gradient_norm": float(report.gradient_norm),
            "training/learning_rate": report.learning_rate,
            "training/tokens_per_second": self._num_tokens / seconds,
        }
        self._last_seconds, self._num_tokens = report.seconds, 0
        self._write(figures, report.step)

    def scores(self, progress: Progress, scores: Mapping[str, float]) -> None:
        """Write every score, and the layer weights of each mix."""
        self._write({f"evaluation/{name}": value for name, value in scores.items()}, progress.step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)


def _step(line: str) -> float:
    """Return the step of a line; one that was cut in the middle belongs to no step."""
    try:
        return float(json.loads(line)["step"])
    except ValueError:
        return float("inf")
