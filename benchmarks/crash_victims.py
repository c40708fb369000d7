"""What the crash campaign kills, and what has to be the same however often it was killed."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from small_jobs import Job

_SECONDS_TO_STOP = 5.0
_ALONE = ("-m", "elmo_framework")
_IN_TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *_ALONE)


@dataclass(frozen=True)
class Place:
    """Where one run of a victim has all its files.

    Attributes:
        folder: made for it alone.
    """

    folder: Path

    @property
    def result(self) -> Path:
        """The folder of the run, or the corpus."""
        return self.folder / "result"

    @property
    def cache(self) -> Path:
        """The folder of the store of layers."""
        return self.folder / "cache"

    @property
    def messages(self) -> Path:
        """The file for what the last process has written to standard error."""
        return self.folder / "stderr.txt"

    @property
    def checkpoint(self) -> int:
        """The step of the last checkpoint; 0 without any."""
        found = self.result.glob("checkpoints/step-*")
        return max((int(path.name[5:]) for path in found), default=0)

    @property
    def unfinished(self) -> list[str]:
        """The names of what is half written or removed."""
        endings = ("writing", "replaced", "removing", "partial")
        found = (path for ending in endings for path in self.folder.rglob(f"*.{ending}"))
        return sorted(path.name for path in found)


class Victim(ABC):
    """Work in a process of its own, or in several.

    Attributes:
        name: what reports call it.
    """

    name: str

    @abstractmethod
    def arguments(self, place: Place) -> list[str]:
        """Return what Python is started with, now and after each kill."""

    @abstractmethod
    def sign(self, place: Place) -> object:
        """Return what changes when the work that is to be killed begins."""

    @abstractmethod
    def results(self, place: Place) -> dict[str, bytes]:
        """Return what must be the same, by name."""

    def kill(
        self, process: subprocess.Popen[bytes], place: Place, chance: random.Random
    ) -> list[str]:
        """Send SIGKILL; return what was wrong with how the work ended."""
        process.kill()
        return []


@final
@dataclass(frozen=True)
class Training(Victim):
    """A training, in one process or in two; a kill of two is a kill of either.

    Attributes:
        name: what reports call it.
        job: what is trained.
        in_two: whether `torchrun` starts it.
    """

    name: str
    job: Job
    in_two: bool = False

    def arguments(self, place: Place) -> list[str]:
        """Return the words of the job; what has begun is recovered."""
        flags = ["--recover"] if place.result.exists() else []
        words = self.job.arguments(place.result, *flags)
        return [*(_IN_TWO if self.in_two else _ALONE), *words]

    def sign(self, place: Place) -> object:
        """Return when the configuration was written, which is done at each start."""
        return _written_at(place.result / "config.json")

    def results(self, place: Place) -> dict[str, bytes]:
        """Return the weights and the scores."""
        return _of_training(place)

    def kill(
        self, process: subprocess.Popen[bytes], place: Place, chance: random.Random
    ) -> list[str]:
        """Kill the process; of two, one, which is no child of this process."""
        if not self.in_two:
            process.kill()
        elif workers := _children(process):
            _send(signal.SIGKILL, chance.choice(workers))
        return []


@final
@dataclass(frozen=True)
class Stopping(Victim):
    """A training in two processes that a scheduler stops: SIGTERM to both, and to `torchrun`.

    Attributes:
        job: what is trained.
    """

    job: Job
    name = "two processes, stopped"

    def arguments(self, place: Place) -> list[str]:
        """Return the words of the job; what has begun is recovered."""
        return Training(self.name, self.job, in_two=True).arguments(place)

    def sign(self, place: Place) -> object:
        """Return how far training has come: before it, a process that is stopped has nothing."""
        return place.checkpoint

    def results(self, place: Place) -> dict[str, bytes]:
        """Return the weights and the scores."""
        return _of_training(place)

    def kill(
        self, process: subprocess.Popen[bytes], place: Place, chance: random.Random
    ) -> list[str]:
        """Send SIGTERM to all; both must end soon, with a checkpoint of the step that they name."""
        if (place.result / "metrics.json").exists():  # the training is done, and torchrun ends
            process.kill()
            return []
        workers = _children(process)
        for pid in (*workers, process.pid):
            _send(signal.SIGTERM, pid)
        began = time.monotonic()
        while any(map(_is_alive, workers)):
            time.sleep(0.01)
        seconds = time.monotonic() - began
        steps = re.findall(r"Stopped by SIGTERM after step (\d+);", place.messages.read_text())
        faults = []
        if seconds > _SECONDS_TO_STOP:
            faults.append(f"the workers ended after {seconds:.1f} seconds")
        if steps != [str(place.checkpoint)] * 2:
            faults.append(f"stopped after steps {steps}, last checkpoint at {place.checkpoint}")
        return faults


@final
@dataclass(frozen=True)
class StoreBuilding(Victim):
    """A training that first builds a store of layers, in many small shards.

    Attributes:
        job: what is trained.
    """

    job: Job
    name = "store"

    def arguments(self, place: Place) -> list[str]:
        """Return the words of the job, after a smaller size of shards."""
        flags = ["--recover"] if place.result.exists() else []
        words = self.job.arguments(place.result, *flags)
        return _with("elmo_framework.layers.cache.cached_layers", "_SHARD_BYTES", 3000, words)

    def sign(self, place: Place) -> object:
        """Return whether layers are computed."""
        return b"are computed once" in place.messages.read_bytes()

    def results(self, place: Place) -> dict[str, bytes]:
        """Return what a training leaves, and the store."""
        return {**_of_training(place), **files_of(place.cache / "layers")}


@final
@dataclass(frozen=True)
class Preparation(Victim):
    """`elmo prepare` in two processes, on small blocks of text.

    Attributes:
        text: what is prepared.
    """

    text: Path
    name = "prepare"

    def arguments(self, place: Place) -> list[str]:
        """Return the words; a kill may come when all is done, and then `--force` does it again.

        What a kill has left between naming the corpus and tidying up must do without.
        """
        words = ["prepare", str(self.text), "--output-dir", str(place.result), "--processes", "2"]
        is_named = Path(f"{place.result}.partial/corpus.json").exists()
        again = ["--force"] if place.result.exists() and not is_named else []
        words += ["--held-out", "50", "--resume", *again]
        return _with("elmo_framework.corpus.tokenized_blocks", "BLOCK_BYTES", 2000, words)

    def sign(self, place: Place) -> object:
        """Return whether text is cut."""
        return b"tokenizing" in place.messages.read_bytes()

    def results(self, place: Place) -> dict[str, bytes]:
        """Return all files of the corpus."""
        return files_of(place.result)


def _children(process: subprocess.Popen[bytes]) -> list[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def _send(number: signal.Signals, pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended is listed until its parent notes it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _with(module: str, name: str, value: int, words: Sequence[str]) -> list[str]:
    """Return what starts `elmo` with another value of a constant."""
    code = (
        f"import sys, {module}; from elmo_framework.commands.main import main; "
        f"{module}.{name} = {value}; sys.exit(main(sys.argv[1:]))"
    )
    return ["-c", code, *words]


def _written_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _of_training(place: Place) -> dict[str, bytes]:
    """Return the weights, and the log of evaluations without the time, which is never the same."""
    lines = (place.result / "metrics.jsonl").read_text().splitlines()
    scores = [{**json.loads(line), "seconds": None} for line in lines]
    weights = (place.result / "weights.safetensors").read_bytes()
    return {"weights.safetensors": weights, "metrics.jsonl": json.dumps(scores).encode()}


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold, but for hidden ones, as locks are."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
