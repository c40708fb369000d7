"""Checkpoints: the complete state of training, intact whenever the process is killed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from elmo_framework.errors import DataError, RunError
from elmo_framework.io.files import remove, remove_folder, replacing, settle, write_text
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.weights import load_tensors, save_tensors
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.state import TrainingState

_LOG = logging.getLogger(__name__)
_WEIGHTS, _AVERAGE, _OPTIMIZER = "model.safetensors", "average.safetensors", "training.pt"
_FOLDER = re.compile(r"step-(\d+)")
_NUM_PROCESSES = "num_processes"
_UNREADABLE = (
    *(OSError, EOFError, DataError, UnpicklingError, RuntimeError),
    *(ValueError, KeyError, TypeError, AttributeError),
)


@dataclass(frozen=True)
class Snapshot:
    """The contents of a checkpoint.

    Attributes:
        progress: steps, epochs and scores so far.
        weights: the model's parameters and buffers.
        average: their moving average; empty without one.
        optimizer: its state; the same on every process.
        local: the state of this rank: random generators, position in the data, carried state. When
            the checkpoint was written by another number of processes, the state of rank 0.
        num_processes: how many processes wrote it.
    """

    progress: TrainingState
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    optimizer: Mapping[str, Any]
    local: Mapping[str, Any]
    num_processes: int


def settle_checkpoints(directory: Path) -> None:
    """Restore the checkpoint that a killed process was replacing; remove incomplete folders.

    One process does this before any looks for checkpoints, or these could resume from different
    ones.

    Args:
        directory: of a `Checkpointer`; it need not exist.
    """
    settle(directory)
    for leftover in list(directory.glob(".*step-*")):
        remove(leftover)


class Checkpointer:
    """Keeps the last checkpoints and the best one; each is a folder that is written atomically.

    Args:
        directory: parent of the checkpoint folders.
        keep: how many of the most recent checkpoints to keep.
        group: the processes, each of which saves its local state.
    """

    def __init__(self, directory: Path, *, keep: int, group: ProcessGroup) -> None:
        self._directory, self._keep, self._group = directory, keep, group
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._pending: Future[None] | None = None

    def save(self, snapshot: Snapshot) -> None:
        """Write a checkpoint, then remove outdated ones.

        Tensors on an accelerator are copied, and a thread writes them while training continues.
        """
        self.finish()
        locals_ = self._group.gather_to_first(_to_cpu(snapshot.local))
        is_copied = not all(uses_cpu_code(tensor) for tensor in snapshot.weights.values())
        if self._group.is_first and is_copied:
            self._pending = self._writer.submit(self._replace, _copied(snapshot), locals_)
        elif self._group.is_first:
            self._replace(snapshot, locals_)
        if not is_copied:
            self._group.wait()

    def finish(self) -> None:
        """Wait until the last checkpoint is written.

        Raises:
            OSError: it could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def restore(self) -> Snapshot | None:
        """Read the last checkpoint, or return None.

        Raises:
            RunError: the checkpoint cannot be read.
        """
        folders = self.folders()
        if not folders:
            return None
        with _readable(folders[max(folders)]) as folder:
            return self._read(folder)

    def folders(self) -> dict[int, Path]:
        """Return the complete checkpoints by step, when the last one is written."""
        self.finish()
        return self._complete()

    def _complete(self) -> dict[int, Path]:
        paths = self._directory.glob("step-*") if self._directory.is_dir() else ()
        matches = ((_FOLDER.fullmatch(path.name), path) for path in paths)
        return {int(match[1]): path for match, path in matches if match and path.is_dir()}

    def weights_file(self, step: int) -> Path:
        return self._folder(step) / _WEIGHTS

    def best_weights(self, progress: TrainingState) -> dict[str, Tensor]:
        """Return the weights with the best score, or the last ones without any score.

        With a moving average, return the averaged weights.
        """
        return _averaged_weights(self._best_folder(progress))

    def best(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Read the weights of `best_weights`, and the optimizer's state at their step.

        Return None without a checkpoint.

        Raises:
            RunError: the checkpoint cannot be read.
        """
        folders = self.folders()
        if not folders:
            return None
        with _readable(folders[max(folders)]) as last:
            folder = self._best_folder(_read_progress(last)[0])
        with _readable(folder):
            return _averaged_weights(folder), _load_state(folder / _OPTIMIZER)

    def _best_folder(self, progress: TrainingState) -> Path:
        folders = self.folders()
        return folders[progress.best_step if progress.best_step in folders else max(folders)]

    def _folder(self, step: int) -> Path:
        return self._directory / f"step-{step:09d}"

    def _replace(self, snapshot: Snapshot, locals_: list[Mapping[str, Any]]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with replacing(self._folder(snapshot.progress.step)) as aside:
            self._write(aside, snapshot, locals_)
        self._remove_old(snapshot.progress)

    def _write(self, folder: Path, snapshot: Snapshot, locals_: list[Mapping[str, Any]]) -> None:
        folder.mkdir()
        save_tensors(snapshot.weights, folder / _WEIGHTS)
        if snapshot.average:
            save_tensors(snapshot.average, folder / _AVERAGE)
        _save_state(snapshot.optimizer, folder / _OPTIMIZER)
        for rank, local in enumerate(locals_):
            _save_state(local, folder / f"process-{rank}.pt")
        progress = {**snapshot.progress.to_json(), _NUM_PROCESSES: len(locals_)}
        write_text(folder / "progress.json", json.dumps(progress, indent=2))

    def _read(self, folder: Path) -> Snapshot:
        progress, num_processes = _read_progress(folder)
        average, rank = folder / _AVERAGE, self._group.rank
        is_exact = num_processes == rank.world_size
        if not is_exact and self._group.is_first:
            _LOG.warning(
                "%s: written by %d processes, but %d are running: training resumes from about "
                "the same place in the data, not exactly as it would have",
                folder,
                num_processes,
                rank.world_size,
            )
        process = rank.index if is_exact else 0
        return Snapshot(
            progress=progress,
            weights=load_tensors(folder / _WEIGHTS),
            average=load_tensors(average) if average.exists() else {},
            optimizer=_load_state(folder / _OPTIMIZER),
            local=_load_state(folder / f"process-{process}.pt"),
            num_processes=num_processes,
        )

    def _remove_old(self, progress: TrainingState) -> None:
        folders = self._complete()
        wanted_steps = {*sorted(folders)[-self._keep :], progress.best_step}
        for step, folder in folders.items():
            if step not in wanted_steps:
                remove_folder(folder)


def _save_state(state: Mapping[str, Any], path: Path) -> None:
    buffer = BytesIO()
    torch.save(dict(state), buffer)
    path.write_bytes(buffer.getbuffer())


def _load_state(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _read_progress(folder: Path) -> tuple[TrainingState, int]:
    """Return the training state and the number of processes that wrote it."""
    progress = json.loads((folder / "progress.json").read_text())
    num_processes = int(progress.pop(_NUM_PROCESSES))
    return TrainingState.from_json(progress), num_processes


def _averaged_weights(folder: Path) -> dict[str, Tensor]:
    average = folder / _AVERAGE
    weights = load_tensors(folder / _WEIGHTS)
    return {**weights, **load_tensors(average)} if average.exists() else weights


@contextmanager
def _readable(folder: Path) -> Iterator[Path]:
    """Turn errors of reading a checkpoint into a `RunError`."""
    try:
        yield folder
    except _UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise RunError(
            f"{folder}: this checkpoint cannot be read ({reason}); remove the folder to resume "
            "from the previous checkpoint"
        ) from error


def _copied(snapshot: Snapshot) -> Snapshot:
    """Copy the tensors of a snapshot to the CPU, so that training can change its own."""
    copied = replace(
        snapshot,
        weights=_copy(snapshot.weights),
        average=_copy(snapshot.average),
        optimizer=_copy(snapshot.optimizer),
    )
    if any(tensor.is_cuda for tensor in snapshot.weights.values()):
        torch.cuda.synchronize()  # the copies to pinned memory are asynchronous
    return copied


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        copy = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
        return copy.copy_(value.detach(), non_blocking=True)
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return value


def _to_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {key: _to_cpu(item) for key, item in value.items()}
    return value
