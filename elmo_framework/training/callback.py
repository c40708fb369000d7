"""The family of callbacks: they read what happens in training and never steer it."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from elmo_framework.config.registry import Registrable
from elmo_framework.config.types import Count, Injected
from elmo_framework.errors import DataError
from elmo_framework.io.files import naming, write_text
from elmo_framework.training.state import StepMetrics, StepReport, TrainingState

METRICS_LOG, STEPS_LOG = "metrics.jsonl", "steps.jsonl"
"""The files of a run that `RunLog` writes."""

_STEPS_BETWEEN_LINES = 20


class Callback(Registrable, ABC):
    """Is told what happens; each method does nothing unless a member says otherwise."""

    def start(self, progress: TrainingState) -> None:
        """Take note of where training starts; what was noted of later steps is cut off."""

    def step(self, report: StepReport) -> None:
        """Take note of an update."""

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Take note of an evaluation, by whose end `progress` counts."""

    def close(self) -> None:
        """Training has ended, well or badly."""


class Callbacks:
    """Several callbacks, told one after the other.

    Args:
        callbacks: in the order in which they are told.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._observers = tuple(callbacks)

    def start(self, progress: TrainingState) -> None:
        """Tell where training starts."""
        for callback in self._observers:
            callback.start(progress)

    def step(self, report: StepReport) -> None:
        """Tell of an update."""
        for callback in self._observers:
            callback.step(report)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Tell of an evaluation."""
        for callback in self._observers:
            callback.scores(progress, scores)

    def close(self) -> None:
        """Tell that training has ended."""
        for callback in self._observers:
            callback.close()


@final
class RunLog(Callback):
    """Writes JSON lines in every run, unasked.

    `metrics.jsonl` has one for each evaluation, `steps.jsonl` one for every twentieth update.

    Args:
        directory: the folder of the run.
    """

    def __init__(self, directory: Path) -> None:
        self._evaluations, self._steps = directory / METRICS_LOG, directory / STEPS_LOG
        self._figures = StepMetrics(_STEPS_BETWEEN_LINES)

    def start(self, progress: TrainingState) -> None:
        """Cut off what was written after the step that training starts from."""
        # An evaluation before the first update may have no checkpoint yet, and will come again.
        for path, most in ((self._evaluations, len(progress.scores)), (self._steps, None)):
            lines = read_log(path) if path.exists() else ()
            kept = [text for text, line in lines if line["step"] <= progress.step][:most]
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, "".join(f"{line}\n" for line in kept))

    def step(self, report: StepReport) -> None:
        """Add a line now and then."""
        figures = self._figures.of(report)
        if figures is not None:
            _add_line(self._steps, report.step, report.seconds, figures)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Add a line."""
        _add_line(self._evaluations, progress.step, progress.seconds, scores)


@final
@Callback.register("tensorboard")
class TensorBoard(Callback):
    """Writes TensorBoard events to `log/`: the figures of steps and of evaluations.

    The figures of a part of the model, such as the weights of a layer mix, stand together under
    the name of the part, scores under `evaluation` and the figures of steps under `training`.

    Args:
        directory: the folder of the run.
        summary_interval: steps between two entries for steps.
    """

    def __init__(self, directory: Injected[Path], summary_interval: Count = 10) -> None:
        self._directory = directory / "log"
        self._figures = StepMetrics(summary_interval)
        self._writer: Any = None

    def start(self, progress: TrainingState) -> None:
        """Open the event file; TensorBoard drops what older ones hold of later steps."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._directory), purge_step=progress.step + 1)

    def step(self, report: StepReport) -> None:
        """Write loss, rate, gradient norm and tokens a second, every few steps."""
        for name, value in (self._figures.of(report) or {}).items():
            self._writer.add_scalar(f"training/{name}", value, report.step)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Write every score and every figure of a part."""
        for name, value in scores.items():
            part, _, figure = name.rpartition(".")
            self._writer.add_scalar(f"{part or 'evaluation'}/{figure}", value, progress.step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _add_line(path: Path, step: int, seconds: float, figures: Mapping[str, float]) -> None:
    with naming(path), path.open("a") as file:
        file.write(json.dumps({"step": step, "seconds": round(seconds, 3), **figures}) + "\n")


def read_log(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a log, as text and as objects with a `step`.

    The last line may be cut: while it is being written, or where the process was killed. It is
    left out then.

    Raises:
        DataError: another line is damaged.
    """
    lines = path.read_bytes().splitlines()
    for number, content in enumerate(lines, start=1):
        try:
            text = content.decode()
            line = json.loads(text)
        except ValueError:
            text, line = "", None
        if isinstance(line, dict) and isinstance(line.get("step"), int | float):
            yield text, line
        elif number < len(lines):
            raise DataError("this line is damaged; remove it", path=path, line=number)
