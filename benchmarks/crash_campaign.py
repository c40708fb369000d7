"""Kills work at random moments and starts it again; what comes out must not change.

Five victims: the training of a biLM, that of a tagger on it, the building of a store of layers,
the cutting of a corpus, and a training in two processes, of which either is killed. Each is done
once without a disturbance. Then it is done again, killed by SIGKILL, started again, killed again,
until it is done; weights, scores and files must be the same bit for bit. When the kills are not
spent, another run follows.

A sixth is the training in two processes that is stopped by SIGTERM to both and to `torchrun`, as by
a scheduler: both must end within 5 seconds and leave a checkpoint.

A kill comes at a random time after the work has begun, so it can hit the counting of words, the
building of the model, an update, a checkpoint or the final files. The seed repeats the times, not
the states that they hit: those depend on the machine's speed.
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

from crash_victims import Place, Preparation, Stopping, StoreBuilding, Training, Victim
from measuring import say
from small_jobs import DATA, pretraining, tagging

_OFTEN: Mapping[str, Any] = {
    "evaluate_every": {"steps": 20},
    "checkpointer": {"save_every": {"steps": 3}},
}
_BILM = Training("biLM", pretraining({**_OFTEN, "num_epochs": 8}))
_LARGEST_SHARE = 0.5
"""The latest kill, as a share of an undisturbed run: small enough for several in one run."""


@dataclass(frozen=True)
class Kill:
    """A process that was killed.

    Attributes:
        victim: what it did.
        run: the number of the run, from 1.
        seconds: how long it lived after its work had begun.
        checkpoint: the step of the last checkpoint that it left; 0 without any.
        unfinished: files and folders that it was writing or removing.
    """

    victim: str
    run: int
    seconds: float
    checkpoint: int
    unfinished: list[str]


@dataclass
class Campaign:
    """What was done so far.

    Attributes:
        seed: of the random times.
        num_runs: that were killed and started again until they were done.
        differences: from the undisturbed runs, and stops that were not clean.
        kills: in their order.
    """

    seed: int
    num_runs: int = 0
    differences: list[str] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def attack(
        self, victim: Victim, folder: Path, *, num_kills: int, chance: random.Random
    ) -> Place:
        """Let a victim do its work undisturbed, then kill it again and again.

        Args:
            victim: what is killed.
            folder: for its runs.
            num_kills: how many kills there are.
            chance: gives the times.

        Returns:
            the place of the undisturbed run.
        """
        whole = _new_place(folder / f"{victim.name}-whole")
        longest = _LARGEST_SHARE * _run(victim, whole)
        say(f"{victim.name}: undisturbed; kills come within {longest:.1f} seconds")
        planned = [chance.uniform(0, longest) for _ in range(num_kills)]
        while planned:
            self.num_runs += 1
            disturbed = _new_place(folder / str(self.num_runs))
            while (
                faults := _kill(victim, disturbed, planned[-1] if planned else None, chance)
            ) is not None:
                self._note(victim, planned.pop(), disturbed, faults)
            if planned:  # this run was faster than the undisturbed one
                planned[-1] /= 2
            self._compare(victim, disturbed, whole)
        return whole

    def _note(self, victim: Victim, seconds: float, place: Place, faults: Sequence[str]) -> None:
        kill = Kill(victim.name, self.num_runs, seconds, place.checkpoint, place.unfinished)
        self.kills.append(kill)
        unfinished = f", unfinished: {', '.join(kill.unfinished)}" if kill.unfinished else ""
        say(
            f"kill {len(self.kills)}: {kill.victim}, run {kill.run}, after {kill.seconds:.3f} "
            f"seconds, last checkpoint at step {kill.checkpoint}{unfinished}"
        )
        self.differences += [f"kill {len(self.kills)}: {fault}" for fault in faults]
        for fault in faults:
            say(fault)

    def _compare(self, victim: Victim, disturbed: Place, whole: Place) -> None:
        found, expected = victim.results(disturbed), victim.results(whole)
        differences = [
            f"{disturbed.folder}: {name} differs from that in {whole.folder}"
            for name in sorted({*found, *expected})
            if found.get(name) != expected.get(name)
        ]
        self.differences += differences
        say(
            "\n".join(differences)
            or f"{victim.name}, run {self.num_runs}: done, the same as undisturbed"
        )


def main() -> int:
    """Run the campaign, print and write what came out; return 1 when a result differs."""
    arguments = _arguments()
    campaign, chance = Campaign(arguments.seed), random.Random(arguments.seed)
    say(f"seed {arguments.seed}")
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="elmo-crash-campaign-"))
    first, *shares = _shares(arguments.kills)
    bilm = campaign.attack(_BILM, folder, num_kills=first, chance=chance).result
    for victim, num_kills in zip(_victims(bilm), [*shares, arguments.stops], strict=True):
        if num_kills:
            campaign.attack(victim, folder, num_kills=num_kills, chance=chance)
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


def _victims(bilm: Path) -> Sequence[Victim]:
    """Return all victims but the biLM that some of them read."""
    return (
        Training("tagger", tagging(bilm, {**_OFTEN, "num_epochs": 24})),
        StoreBuilding(tagging(bilm, {"num_epochs": 1})),
        Preparation(DATA / "lm_train.txt"),
        Training("biLM in two processes", pretraining({**_OFTEN, "num_epochs": 8}), in_two=True),
        Stopping(pretraining({**_OFTEN, "num_epochs": 24})),
    )


def _shares(num_kills: int) -> list[int]:
    """Divide the kills among the five victims."""
    return [(num_kills + number) // 5 for number in range(5)]


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Kill work at random moments and start it again.")
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument("--stops", type=int, default=10, help="how many by SIGTERM (10)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="of the times; random unless set"
    )
    parser.add_argument("--output-file", type=Path, help="where a JSON summary is written")
    return parser.parse_args()


def _new_place(folder: Path) -> Place:
    folder.mkdir()
    return Place(folder)


def _run(victim: Victim, place: Place) -> float:
    """Let the work be done; return the seconds that it took once it had begun."""
    process = _started(victim, place)
    began = time.monotonic()
    _require_success(process.wait(), place)
    return time.monotonic() - began


def _kill(
    victim: Victim, place: Place, after: float | None, chance: random.Random
) -> list[str] | None:
    """Let work go on, and kill it after some seconds.

    Returns:
        What was wrong with its end; None if it was done before.
    """
    process = _started(victim, place)
    try:
        _require_success(process.wait(after), place)
    except subprocess.TimeoutExpired:
        faults = victim.kill(process, place, chance)
        # An end in the moment before the signal is no kill.
        return faults if process.wait() else None
    return None


def _started(victim: Victim, place: Place) -> subprocess.Popen[bytes]:
    """Start a process; return when its work has begun, or when it has ended."""
    arguments = victim.arguments(place)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ELMO_CACHE_ROOT": str(place.cache)}
    with place.messages.open("wb") as messages:
        before = victim.sign(place)
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=messages,
        )
    while process.poll() is None and victim.sign(place) == before:
        time.sleep(0.005)
    return process


def _require_success(code: int, place: Place) -> None:
    """Stop the campaign when a process has failed by itself; show what it wrote."""
    if code:
        sys.exit(f"{place.folder}: exit code {code}\n{place.messages.read_text()}")


if __name__ == "__main__":
    sys.exit(main())
