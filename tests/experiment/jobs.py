"""Whole jobs at the smallest size: the shipped configs on the demo's sentences."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from elmo_framework.commands.main import main
from elmo_framework.config.types import Injected
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepReport

ROOT = Path(__file__).parents[2]
DATA = ROOT / "experiments/demo"

PRETRAINING: dict[str, Any] = {
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
    "validation_data_loader": {"type": "windows", "batch_size": 16, "unroll_steps": 20},
    "trainer.num_epochs": 2,
    "trainer.evaluate_every": {"steps": 10},
}
TAGGING: dict[str, Any] = {
    "dataset_reader.max_instances": 40,
    "train_data_path": str(DATA / "train.txt"),
    "validation_data_path": str(DATA / "valid.txt"),
    "model.embedder.token_embedders.tokens.embedding_dim": 8,
    "model.embedder.token_embedders.tokens.pretrained_file": None,
    "model.embedder.token_embedders.tokens.min_count": 2,
    "model.embedder.token_embedders.token_characters.encoder.num_filters": 8,
    "model.encoder.hidden_size": 8,
    "data_loader.batch_size": 8,
    "trainer.num_epochs": 4,
    "trainer.optimizer.lr": 0.02,
}
_SECONDS = 300.0
_SECONDS_TO_END = 40.0
"""More than the 30 that `torchrun` gives its workers."""


@final
@Callback.register("signal_once")
class SignalOnce(Callback):
    """Sends its own process a signal after an update, the first time that it comes there.

    Args:
        directory: of the run; a file next to it remembers that the signal was sent.
        step: the update.
        name: of the signal.
    """

    def __init__(self, directory: Injected[Path], step: int, name: str) -> None:
        self._sent = directory.parent / f"{directory.name}-signalled-{step}"
        self._step = step
        self._signal = signal.Signals[name]

    def step(self, report: StepReport) -> None:
        if report.step == self._step and not self._sent.exists():
            self._sent.touch()
            os.kill(os.getpid(), self._signal)


@final
@Callback.register("terminate_job")
class TerminateJob(Callback):
    """Sends SIGTERM as schedulers do: to each process of the job, also to `torchrun`.

    Args:
        step: the update after which it does.
    """

    def __init__(self, step: int) -> None:
        self._step = step

    def step(self, report: StepReport) -> None:
        if report.step == self._step:
            launcher = os.getppid()
            children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
            for pid in (launcher, *map(int, children)):
                os.kill(pid, signal.SIGTERM)


def arguments(config: str, directory: Path, changes: dict[str, Any], *flags: str) -> list[str]:
    """The words that follow `elmo` on the command line."""
    overrides = [word for key in changes for word in ("-o", f"{key}={json.dumps(changes[key])}")]
    return ["train", str(ROOT / config), "-s", str(directory), *overrides, *flags]


def train(config: str, directory: Path, changes: dict[str, Any], *flags: str) -> int:
    """Run `elmo train` in this process and return its exit code."""
    return main(arguments(config, directory, changes, *flags))


def run_python(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own; if it hangs, it is ended with all that it started.

    Args:
        words: that follow `python` on the command line.
        text: its standard input; that of the tests unless given.

    Raises:
        subprocess.TimeoutExpired: it hung.
    """
    command = [sys.executable, *words]
    with subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdin=None if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(text, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def run_forked(work: Callable[[], int]) -> int | None:
    """Do work in a process that has imported everything already, and return how it ended.

    Args:
        work: returns the exit code.

    Returns:
        the exit code; the negative number of the signal that has ended it; None if it hung.
    """
    process = multiprocessing.get_context("fork").Process(
        target=lambda: sys.exit(work()), daemon=True
    )
    process.start()
    process.join(_SECONDS)
    return process.exitcode


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and its group, and first in peace: `torchrun` has to end its workers itself."""
    process.terminate()
    try:
        process.communicate(timeout=_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def pretrain(directory: Path, **changes: Any) -> Path:
    """Pretrain a biLM of a few hundred weights."""
    assert train("experiments/pretrain/demo.jsonnet", directory, {**PRETRAINING, **changes}) == 0
    return directory


def tagging_with(bilm: Path | str, **changes: Any) -> dict[str, Any]:
    """What changes the tagger with ELMo into a small one on a biLM."""
    elmo = {"model.embedder.token_embedders.elmo.bilm": str(bilm)}
    return {**TAGGING, **elmo, **changes}


def numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return scores without tables, such as those of labels."""
    return {name: value for name, value in scores.items() if isinstance(value, int | float)}


def evaluations(directory: Path) -> list[dict[str, float]]:
    """The lines of a run's log without the time, which is never the same."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name != "seconds"} for line in lines]
