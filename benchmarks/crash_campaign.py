"""Kills training at random moments and recovers it; the results must not change.

A biLM and a tagger on it are trained once without a disturbance. Then each is trained again,
killed by SIGKILL, recovered, killed again, until it is done; its weights must be the same bit for
bit, and so must its log of evaluations but for the time. When the kills are not spent, another
run follows.

A kill comes at a random time after the process has written its configuration, so it can hit the
counting of words, the building of the model, an update, a checkpoint or the final files. The seed
repeats the times, not the states that they hit: those depend on the machine's speed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

from small_jobs import Job, pretraining, tagging

_OFTEN: Mapping[str, Any] = {
    "evaluate_every": {"steps": 20},
    "checkpointer": {"save_every": {"steps": 3}},
}
_PRETRAINING = pretraining({**_OFTEN, "num_epochs": 8})
_LARGEST_SHARE = 0.5
"""The latest kill, as a share of an undisturbed training: small enough for several in one run."""


@dataclass(frozen=True)
class Kill:
    """A process that was killed.

    Attributes:
        job: what it trained.
        run: the number of the run, from 1.
        seconds: how long it lived after it had written its configuration.
        checkpoint: the step of the last checkpoint that it left; 0 without any.
        unfinished: files and folders that it was writing or removing.
    """

    job: str
    run: int
    seconds: float
    checkpoint: int
    unfinished: list[str]


@dataclass
class Campaign:
    """What was done so far.

    Attributes:
        seed: of the random times.
        num_runs: that were killed and recovered until they were done.
        differences: from the undisturbed runs.
        kills: in their order.
    """

    seed: int
    num_runs: int = 0
    differences: list[str] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def attack(self, job: Job, folder: Path, *, num_kills: int, chance: random.Random) -> None:
        """Train a job undisturbed, then kill it again and again.

        Args:
            job: what is trained.
            folder: for its runs.
            num_kills: how many kills there are.
            chance: gives the times.
        """
        whole = folder / f"{job.name}-whole"
        longest = _LARGEST_SHARE * _train(job, whole)
        say(f"{job.name}: undisturbed; kills come within {longest:.1f} seconds")
        planned = [chance.uniform(0, longest) for _ in range(num_kills)]
        while planned:
            self.num_runs += 1
            disturbed = folder / f"{job.name}-{self.num_runs}"
            while _is_killed(job, disturbed, planned[-1] if planned else None):
                self._note(Kill(job.name, self.num_runs, planned.pop(), *_left_in(disturbed)))
            self._compare(disturbed, whole)

    def _note(self, kill: Kill) -> None:
        self.kills.append(kill)
        unfinished = f", unfinished: {', '.join(kill.unfinished)}" if kill.unfinished else ""
        say(
            f"kill {len(self.kills)}: {kill.job}, run {kill.run}, after {kill.seconds:.3f} "
            f"seconds, last checkpoint at step {kill.checkpoint}{unfinished}"
        )

    def _compare(self, disturbed: Path, whole: Path) -> None:
        found = []
        if not _same_bytes(disturbed / "weights.safetensors", whole / "weights.safetensors"):
            found.append(f"{disturbed}: the weights differ from those in {whole}")
        if _evaluations(disturbed) != _evaluations(whole):
            found.append(f"{disturbed}: metrics.jsonl differs from that in {whole}")
        self.differences += found
        say("\n".join(found) or f"{disturbed.name}: done, the same as undisturbed")


def main() -> int:
    """Run the campaign, print and write what came out; return 1 when a result differs."""
    arguments = _arguments()
    campaign, chance = Campaign(arguments.seed), random.Random(arguments.seed)
    say(f"seed {arguments.seed}")
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="elmo-crash-campaign-"))
    num_first = (arguments.kills + 1) // 2
    campaign.attack(_PRETRAINING, folder, num_kills=num_first, chance=chance)
    tagger = tagging(folder / "bilm-whole", {**_OFTEN, "num_epochs": 24})
    campaign.attack(tagger, folder, num_kills=arguments.kills - num_first, chance=chance)
    seconds = round(time.monotonic() - started)
    say(
        f"{len(campaign.kills)} kills in {campaign.num_runs} runs, {seconds} seconds: "
        f"{len(campaign.differences)} differences (seed {campaign.seed})"
    )
    if arguments.output_file:
        summary = {**asdict(campaign), "num_kills": len(campaign.kills), "seconds": seconds}
        arguments.output_file.write_text(json.dumps(summary, indent=2) + "\n")
    if campaign.differences:
        say(f"the runs are kept in {folder}")
        return 1
    rmtree(folder)
    return 0


def say(text: str) -> None:
    """Print at once."""
    print(text, flush=True)  # noqa: T201


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Kill training at random moments and recover it.")
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="of the times; random unless set"
    )
    parser.add_argument("--output-file", type=Path, help="where a JSON summary is written")
    return parser.parse_args()


def _train(job: Job, directory: Path) -> float:
    """Train to the end; return the seconds from the written configuration on."""
    process = _started(job, directory)
    began = time.monotonic()
    _require_success(process.wait(), directory)
    return time.monotonic() - began


def _is_killed(job: Job, directory: Path, after: float | None) -> bool:
    """Train, or go on, and kill the process after some seconds; tell whether it still lived."""
    process = _started(job, directory, *(["--recover"] if directory.exists() else []))
    try:
        _require_success(process.wait(after), directory)
    except subprocess.TimeoutExpired:
        process.kill()
        # An end in the moment before the signal is no kill.
        return process.wait() < 0
    return False


def _started(job: Job, directory: Path, *flags: str) -> subprocess.Popen[bytes]:
    """Start a training; return when it has written its configuration, as it does each time."""
    sign = directory / "config.json"
    before = sign.stat().st_mtime_ns if sign.exists() else 0
    command = [sys.executable, "-m", "elmo_framework", *job.arguments(directory, *flags)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with _messages(directory).open("wb") as messages:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=messages
        )
    while process.poll() is None and not (sign.exists() and sign.stat().st_mtime_ns > before):
        time.sleep(0.005)
    return process


def _require_success(code: int, directory: Path) -> None:
    """Stop the campaign when a process has failed by itself; show what it wrote."""
    if code:
        sys.exit(f"{directory}: exit code {code}\n{_messages(directory).read_text()}")


def _messages(directory: Path) -> Path:
    """Return the file for what the last process of a run writes to standard error."""
    return directory.with_name(f"{directory.name}.stderr")


def _left_in(directory: Path) -> tuple[int, list[str]]:
    """Return the last checkpoint's step, and the names of what is half written or removed."""
    steps = [int(path.name[5:]) for path in directory.glob("checkpoints/step-*")]
    unfinished = sorted(
        path.name for ending in ("writing", "removing") for path in directory.rglob(f".*.{ending}")
    )
    return max(steps, default=0), unfinished


def _same_bytes(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def _evaluations(directory: Path) -> list[dict[str, float]]:
    """Return the log of evaluations without the time, which is never the same."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name != "seconds"} for line in lines]


if __name__ == "__main__":
    sys.exit(main())
