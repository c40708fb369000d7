"""Kills two processes that work on one study at random moments; the records must not change.

A study of four small taggers is done once without a disturbance. Then two `elmo study` work on it
at the same time. At random times, one of them, the process that their workers are forked from, or
a worker is killed by SIGKILL, and each `elmo study` that has ended is started again, until the
study is done. Records, terms of examples and tables must be the same bit for bit, but for times.

With `--waste`, a study of 60 small taggers shows how much of the machine is wasted instead: the
part of the time of `--jobs` processes, from the start of `elmo study` to its end, that is not
inside of a run. A run is from the first line of its log, before its config is checked, to the
record of its scores. So imports, the check of the study, starts and ends of processes, pauses
between runs and the tables at the end are waste.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

from measuring import say
from small_jobs import DATA

from elmo_framework.config.load import Config

_ROOT = Path(__file__).parents[1]
_TIMES = ("minutes", "versions")
_SECONDS_TO_END = 600.0


def tagger(**trainer: Any) -> dict[str, Any]:
    """Return the config of a tagger of the demo, which is trained in seconds."""
    changes = {
        "dataset_reader.max_instances": 40,
        "train_data_path": str(DATA / "train.txt"),
        "validation_data_path": str(DATA / "valid.txt"),
        "model.embedder.token_embedders.tokens.pretrained_file": None,
        "model.embedder.token_embedders.tokens.min_count": 2,
        "model.encoder.hidden_size": 8,
        "data_loader.batch_size": 8,
        "trainer.device": "cpu",
        "trainer.callbacks": [],
    }
    changes |= {f"trainer.{key}": value for key, value in trainer.items()}
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    return Config.load(_ROOT / "experiments/ner/baseline.jsonnet", overrides=overrides).raw


@dataclass
class Campaign:
    """Two processes that work on one study, and are killed.

    Attributes:
        path: the file of the study.
        folder: of the study.
        chance: gives the times and the victims.
        longest: the most seconds between two kills.
        num_kills: so far, by what was killed.
    """

    path: Path
    folder: Path
    chance: random.Random
    longest: float
    num_kills: dict[str, int] = field(default_factory=dict)

    def run(self, kills: int) -> int:
        """Work on the study until it is done; return the number of kills that are left."""
        processes = [self._start() for _ in range(2)]
        due = time.monotonic() + self.chance.uniform(0, self.longest)
        while True:
            codes = [process.poll() for process in processes]
            if 0 in codes:
                break
            processes = [
                self._start() if code is not None else process
                for code, process in zip(codes, processes, strict=True)
            ]
            if kills and time.monotonic() >= due:
                kills -= self._kill(self.chance.choice(processes))
                due = time.monotonic() + self.chance.uniform(0, self.longest)
            time.sleep(0.02)
        for process in processes:
            process.wait(_SECONDS_TO_END)
        return kills

    def _start(self) -> subprocess.Popen[bytes]:
        command = ["-m", "elmo_framework", "study", str(self.path), "-s", str(self.folder)]
        with (self.path.parent / "stderr.txt").open("ab") as messages:
            return subprocess.Popen([sys.executable, *command, "--jobs", "1"], stderr=messages)

    def _kill(self, process: subprocess.Popen[bytes]) -> int:
        """Kill a process or one of those below it; return the number of processes killed."""
        servers = _children(process.pid)
        workers = [pid for server in servers for pid in _children(server)]
        if not servers:  # it still starts
            return 0
        kinds = {"elmo study": [process.pid], "server": servers, "worker": workers}
        kind = self.chance.choice([kind for kind, pids in kinds.items() if pids])
        with suppress(ProcessLookupError):
            os.kill(self.chance.choice(kinds[kind]), signal.SIGKILL)
            self.num_kills[kind] = self.num_kills.get(kind, 0) + 1
            say(f"kill {sum(self.num_kills.values())}: {kind}; {self._num_done()} records")
            return 1
        return 0

    def _num_done(self) -> int:
        return len(list(self.folder.glob("results/*/*/*.json")))


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in text.split()]
    return []


def results(folder: Path) -> dict[str, bytes]:
    """Return the content of all results but for times, by name."""
    _, *lines = (folder / "table.md").read_text(encoding="utf-8").splitlines()  # without title
    contents = {"table.md": _without_minutes("\n".join(lines)).encode()}
    for path in sorted((folder / "results").rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            record = {**json.loads(path.read_text()), **dict.fromkeys(_TIMES)}
            contents[name] = json.dumps(record).encode()
        elif path.suffix == ".npz" and not path.name.startswith("."):
            contents[name] = path.read_bytes()
    return contents


def _without_minutes(table: str) -> str:
    """Drop the column of minutes, numbers with one digit after the point, from a table."""
    return re.sub(r"\| \d+\.\d (?=\| \[)", "| ", table)


def kill_campaign(folder: Path, *, kills: int, chance: random.Random) -> list[str]:
    """Kill until no kills are left; return what differs from the undisturbed study."""
    often = {"num_epochs": 4, "checkpointer": {"save_every": {"steps": 3}}}
    variants = {"narrow": {}, "wide": {"model.encoder.hidden_size": 16}}
    path = _write(folder, tagger(**often), variants=variants, seeds=[1, 2])
    whole = Campaign(path, folder / "whole", chance, longest=0.0)
    began = time.monotonic()
    whole.run(0)
    expected, seconds = results(whole.folder), time.monotonic() - began
    say(f"undisturbed: {len(expected)} files in {seconds:.1f} seconds")
    differences, number = [], 0
    counts: dict[str, int] = {}
    while kills:
        number += 1
        disturbed = Campaign(path, folder / str(number), chance, seconds / 4, counts)
        kills = disturbed.run(kills)
        actual = results(disturbed.folder)
        different = [
            f"study {number}: {name} differs"
            for name in sorted({*actual, *expected})
            if actual.get(name) != expected.get(name)
        ]
        differences += different
        say("\n".join(different) or f"study {number}: done, the same as undisturbed")
    say(f"killed: {counts}; studies: {number}; differences: {len(differences)}")
    return differences


def measure_waste(folder: Path, *, num_runs: int, num_epochs: int, jobs: int) -> dict[str, Any]:
    """Run a study undisturbed; return how much of the machine's time passed inside of runs."""
    path = _write(folder, tagger(num_epochs=num_epochs), seeds=list(range(num_runs)))
    began = time.time()
    command = ["-m", "elmo_framework", "study", str(path), "-s", str(folder / "study")]
    subprocess.run([sys.executable, *command, "--jobs", str(jobs)], check=True)
    ended = time.time()
    spans = sorted(_spans(folder / "study"))
    busy = sum(end - start for start, end in spans)
    training = sum(60 * record["minutes"] for record in _records(folder / "study"))
    first, last = spans[0][0], max(end for _, end in spans)
    total = jobs * (ended - began)
    return {
        "runs": len(spans),
        "jobs": jobs,
        "wall": round(ended - began, 2),
        "waste": round(1 - busy / total, 4),
        "training": round(training / total, 4),
        "before_the_first_run": round(jobs * (first - began) / total, 4),
        "between_runs": round((jobs * (last - first) - busy) / total, 4),
        "after_the_last_run": round(jobs * (ended - last) / total, 4),
    }


def _spans(folder: Path) -> Iterator[tuple[float, float]]:
    """Yield when each run began and ended, by its log and its record."""
    for path in (folder / "results").rglob("*.json"):
        log = (folder / "logs" / path.relative_to(folder / "results")).with_suffix(".log")
        began = datetime.fromisoformat(log.read_text().split()[0])
        yield began.timestamp(), path.stat().st_mtime


def _records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (folder / "results").rglob("*.json")]


def _write(
    folder: Path,
    config: Mapping[str, Any],
    *,
    seeds: Sequence[int],
    variants: Mapping[str, Any] = {},
) -> Path:
    path = folder / "study.json"
    study = {"configs": {"ner": {"config": config}}, "variants": variants, "seeds": seeds}
    path.write_text(json.dumps(study))
    return path


def main() -> int:
    """Run a campaign or a measurement; return 1 when a result differs."""
    arguments = _arguments()
    os.environ |= {"OMP_NUM_THREADS": "1"}
    folder = Path(tempfile.mkdtemp(prefix="elmo-study-campaign-"))
    os.environ.setdefault("ELMO_CACHE_ROOT", str(folder / "cache"))
    if arguments.waste:
        figures = measure_waste(
            folder, num_runs=arguments.runs, num_epochs=arguments.epochs, jobs=arguments.jobs
        )
        say(json.dumps(figures, indent=2))
        rmtree(folder)
        return 0
    say(f"seed {arguments.seed}")
    chance = random.Random(arguments.seed)
    if kill_campaign(folder, kills=arguments.kills, chance=chance):
        say(f"the studies are kept in {folder}")
        return 1
    rmtree(folder)
    return 0


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Kill two processes that work on one study.")
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="of the times; random by default"
    )
    parser.add_argument("--waste", action="store_true", help="measure time outside of runs instead")
    parser.add_argument("--runs", type=int, default=60, help="of --waste: number of runs (60)")
    parser.add_argument("--epochs", type=int, default=20, help="of --waste: of each run (20)")
    parser.add_argument("--jobs", type=int, default=2, help="of --waste: runs at a time (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
