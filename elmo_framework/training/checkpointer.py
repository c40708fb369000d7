"""Checkpoints: all that training goes on from, whole whenever the process is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from elmo_framework.common.errors import RunError
from elmo_framework.common.files import remove_folder, replacing, write_text
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.progress import Progress

_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, SafetensorError, UnpicklingError)


@dataclass(frozen=True)
class Snapshot:
    """What a checkpoint holds.

    Attributes:
        progress: how far training is.
        weights: the model's parameters and buffers.
        average: their moving average; empty without one.
        training: the optimizer's state; the same on every process.
        local: this process's own: generators, position in the data, carried state.
    """

    progress: Progress
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    training: Mapping[str, Any]
    local: Mapping[str, Any]


class Checkpointer:
    """Keeps the last checkpoints and the best one, each a folder that is whole or not there.

    Args:
        directory: where the folders are.
        keep: how many of the last are kept.
        group: the processes, each of which keeps its own part.
    """

    def __init__(self, directory: Path, *, keep: int, group: ProcessGroup) -> None:
        self._directory, self._keep, self._group = directory, keep, group

    def save(self, snapshot: Snapshot) -> None:
        """Write a checkpoint, then remove those that are no longer wanted."""
        locals_ = self._group.gather(_to_cpu(snapshot.local))
        if self._group.is_first:
            self._directory.mkdir(parents=True, exist_ok=True)
            with replacing(self._folder(snapshot.progress.step)) as aside:
                self._write(aside, snapshot, locals_)
            self._remove_old(snapshot.progress)
        self._group.wait()

    def restore(self) -> Snapshot | None:
        """Read the last checkpoint; None when there is none.

        Raises:
            RunError: it cannot be read, or was written by another number of processes.
        """
        folders = self.folders()
        if not folders:
            return None
        folder = folders[max(folders)]
        try:
            return self._read(folder)
        except _UNREADABLE as error:
            reason = str(error).partition("\n")[0]
            raise RunError(
                f"{folder}: this checkpoint cannot be read ({reason}); remove the folder to go on "
                "from the one before"
            ) from error

    def folders(self) -> dict[int, Path]:
        """Return the whole checkpoints by step."""
        found = self._directory.glob("step-*") if self._directory.is_dir() else ()
        return {int(path.name.removeprefix("step-")): path for path in found}

    def best_weights(self, progress: Progress) -> dict[str, Tensor]:
        """Return the weights that scored best, or the last when nothing was scored.

        Where a moving average is kept, they are those of the average.
        """
        folders = self.folders()
        folder = folders[progress.best_step if progress.best_step in folders else max(folders)]
        average = folder / "average.safetensors"
        weights = load_file(folder / "model.safetensors")
        return {**weights, **load_file(average)} if average.exists() else weights

    def _folder(self, step: int) -> Path:
        return self._directory / f"step-{step:09d}"

    def _write(self, folder: Path, snapshot: Snapshot, locals_: list[Mapping[str, Any]]) -> None:
        folder.mkdir()
        save_tensors(snapshot.weights, folder / "model.safetensors")
        if snapshot.average:
            save_tensors(snapshot.average, folder / "average.safetensors")
        _save_state(snapshot.training, folder / "training.pt")
        for rank, local in enumerate(locals_):
            _save_state(local, folder / f"process-{rank}.pt")
        written = {**snapshot.progress.to_json(), "num_processes": len(locals_)}
        write_text(folder / "progress.json", json.dumps(written, indent=2))

    def _read(self, folder: Path) -> Snapshot:
        written = json.loads((folder / "progress.json").read_text())
        num_processes, share = written.pop("num_processes"), self._group.share
        if num_processes != share.world_size:
            raise RunError(
                f"{folder}: written by {num_processes} processes, and now there are "
                f"{share.world_size}; start as many as before"
            )
        average = folder / "average.safetensors"
        return Snapshot(
            progress=Progress.from_json(written),
            weights=load_file(folder / "model.safetensors"),
            average=load_file(average) if average.exists() else {},
            training=torch.load(folder / "training.pt", weights_only=True),
            local=torch.load(folder / f"process-{share.rank}.pt", weights_only=True),
        )

    def _remove_old(self, progress: Progress) -> None:
        folders = self.folders()
        kept = {*sorted(folders)[-self._keep :], progress.best_step}
        for step, folder in folders.items():
            if step not in kept:
                remove_folder(folder)


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors.

    Raises:
        OSError: the disk is full, or the like; the library's own writing says so less plainly.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    path.write_bytes(to_bytes(on_cpu))


def _save_state(state: Mapping[str, Any], path: Path) -> None:
    buffer = BytesIO()
    torch.save(dict(state), buffer)
    path.write_bytes(buffer.getbuffer())


def _to_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, Mapping):
        return {key: _to_cpu(item) for key, item in value.items()}
    return value
