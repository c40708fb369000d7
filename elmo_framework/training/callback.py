"""Training callbacks: they observe training and never change it."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Iterator, Mapping
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
    """Base class for training callbacks; every hook is a no-op by default."""

    def start(self, progress: TrainingState) -> None:
        """Called once before the first update; drop anything recorded for later steps."""

    def step(self, report: StepReport) -> None:
        """Called after each update."""

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        """Called after each evaluation; `progress` already includes it."""

    def close(self) -> None:
        """Called when training ends, also after an error."""


@final
class RunLog(Callback):
    """Writes JSON lines in every run, without being configured.

    `metrics.jsonl` gets a line per evaluation, `steps.jsonl` one for every twentieth update.
    """

    def __init__(self, directory: Path) -> None:
        self._evaluations, self._steps = directory / METRICS_LOG, directory / STEPS_LOG
        self._metrics = StepMetrics(_STEPS_BETWEEN_LINES)

    def start(self, progress: TrainingState) -> None:
        """Remove the lines written after the step that training starts from."""
        # An evaluation before the first update may have no checkpoint yet; it will be repeated.
        for path, limit in ((self._evaluations, len(progress.scores)), (self._steps, None)):
            lines = read_log(path) if path.exists() else ()
            earlier = [text for text, line in lines if line["step"] <= progress.step][:limit]
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, "".join(f"{line}\n" for line in earlier))

    def step(self, report: StepReport) -> None:
        metrics = self._metrics.of(report)
        if metrics is not None:
            _add_line(self._steps, report.step, report.seconds, metrics)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        _add_line(self._evaluations, progress.step, progress.seconds, scores)


@final
@Callback.register("tensorboard")
class TensorBoard(Callback):
    """Writes TensorBoard events to `log/`: metrics of steps and of evaluations.

    Metrics of steps are grouped under `training`, scores under `evaluation`, and the values that a
    part of the model reports, such as the weights of a layer mix, under the name of that part.

    Args:
        directory: the run directory.
        summary_interval: number of steps between two entries for steps.
    """

    def __init__(self, directory: Injected[Path], summary_interval: Count = 10) -> None:
        self._directory = directory / "log"
        self._metrics = StepMetrics(summary_interval)
        self._writer: Any = None

    def start(self, progress: TrainingState) -> None:
        """Open the event file; TensorBoard drops later steps of older event files."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._directory), purge_step=progress.step + 1)

    def step(self, report: StepReport) -> None:
        for name, value in (self._metrics.of(report) or {}).items():
            self._writer.add_scalar(f"training/{name}", value, report.step)

    def scores(self, progress: TrainingState, scores: Mapping[str, float]) -> None:
        for name, value in scores.items():
            part, _, metric = name.rpartition(".")
            self._writer.add_scalar(f"{part or 'evaluation'}/{metric}", value, progress.step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _add_line(path: Path, step: int, seconds: float, metrics: Mapping[str, float]) -> None:
    with naming(path), path.open("a") as file:
        file.write(json.dumps({"step": step, "seconds": round(seconds, 3), **metrics}) + "\n")


def read_log(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a log, as text and as objects with a `step`.

    An incomplete last line is skipped: it is still being written, or the process was killed.

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
