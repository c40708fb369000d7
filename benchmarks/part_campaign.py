"""Kill the parts of `elmo embed` and `elmo prepare` at random moments, and start them again.

Some parts run at the same time. One of them after the other is killed by SIGKILL and started again,
until all are done; further rounds follow until there were enough kills. Their files must be those
of one undisturbed job, byte for byte, and what was finished before a kill must not be done again: a
killed part repeats at most the shard, or the block, that it was writing.

    python benchmarks/part_campaign.py BILM --kills 100
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import final

from crash_victims import files_of
from measuring import say
from small_jobs import DATA

_NUM_PARTS = 3
_UNIT_BYTES = 1000
_LONGEST_LIFE = 0.4
"""Seconds from the beginning of the work to the latest kill."""

_CODE = """
import os, sys
from pathlib import Path
from elmo_framework.corpus import tokenized_blocks, tokenize
from elmo_framework.embedding import embed, shards
from elmo_framework.commands.main import main

log = open(sys.argv[1], "a", buffering=1)
tokenized_blocks.BLOCK_BYTES = shards.SHARD_BYTES = {size}
write_shard, tokenize_block = embed._write_shard, tokenize._tokenize

def logged_shard(parts, path, progress):
    name = path.name.removeprefix(".").split(".")[0]
    print("begun", os.getpid(), name, file=log)
    write_shard(parts, path, progress)
    print("finished", os.getpid(), name, file=log)

def logged_block(block, path, split_line):
    print("begun", os.getpid(), block.number, file=log)
    done = tokenize_block(block, path, split_line)
    print("finished", os.getpid(), block.number, file=log)
    return done

embed._write_shard, tokenize._tokenize = logged_shard, logged_block
sys.exit(main(sys.argv[2:]))
"""


@final
@dataclass(frozen=True)
class Work:
    """A command that several parts share.

    Attributes:
        name: what reports call it.
        words: of the command, but for its output and its part.
        merge: the flag that completes it when all parts are done; none by default.
    """

    name: str
    words: Sequence[str]
    merge: str = ""

    def run(self, output: Path, *words: str) -> subprocess.Popen[bytes]:
        """Start the command."""
        code = _CODE.format(size=_UNIT_BYTES)
        log, errors = output.with_suffix(".log"), output.with_suffix(".err")
        command = [sys.executable, "-c", code, str(log), *self.words, "--output-dir", str(output)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with errors.open("ab") as file:
            return subprocess.Popen([*command, *words], env=environment, stderr=file)


def main() -> int:
    """Run both campaigns; return 1 if a result differs or work was repeated."""
    arguments = _arguments()
    chance, text = random.Random(arguments.seed), str(DATA / "lm_train.txt")
    say(f"seed {arguments.seed}")
    folder = Path(tempfile.mkdtemp(prefix="elmo-part-campaign-"))
    options = ["--layers", "top", "--pool", "mean", "--format", arguments.format]
    faults = [
        *_attack(
            Work("embed", ["embed", arguments.bilm, text, *options]), folder, arguments, chance
        ),
        *_attack(
            Work("prepare", ["prepare", text, "--processes", "1"], merge="--merge"),
            folder,
            arguments,
            chance,
        ),
    ]
    say("\n".join(faults) or "no differences")
    if not faults:
        rmtree(folder)
    return bool(faults)


def _attack(work: Work, folder: Path, arguments: Namespace, chance: random.Random) -> list[str]:
    """Do the work undisturbed, then with kills; return what was wrong."""
    whole = folder / f"{work.name}-whole"
    _require_success(work.run(whole), whole)
    began, faults = time.monotonic(), list[str]()
    num_kills = num_rounds = num_repeated = 0
    while num_kills < arguments.kills:
        num_rounds += 1
        shared = folder / f"{work.name}-{num_rounds}"
        killed = _round(work, shared, arguments.kills - num_kills, chance)
        if work.merge:
            _require_success(work.run(shared, work.merge), shared)
        num_kills += len(killed)
        repeated, found = _check_log(shared.with_suffix(".log"), killed)
        num_repeated += repeated
        if files_of(shared) != files_of(whole):
            found.append(f"{shared} differs from {whole}")
        faults += found
    say(
        f"{work.name}: {num_kills} kills of {_NUM_PARTS} parts in {num_rounds} rounds, "
        f"{num_repeated} units done again, {time.monotonic() - began:.0f} seconds"
    )
    return faults


def _round(work: Work, output: Path, num_kills: int, chance: random.Random) -> set[int]:
    """Let all parts finish, and kill them until then; return the processes that were killed."""
    killed = set[int]()
    running = {part: _start(work, output, part) for part in range(_NUM_PARTS)}
    while running:
        part = chance.choice(list(running))
        process = running[part]
        _wait_for_work(process, output.with_suffix(".log"))
        time.sleep(chance.uniform(0, _LONGEST_LIFE))
        if process.poll() is None and len(killed) < num_kills:
            process.kill()
        if process.wait() == -signal.SIGKILL:
            killed.add(process.pid)
            running[part] = _start(work, output, part)
        else:
            _require_success(process, output)
            del running[part]
    return killed


def _start(work: Work, output: Path, part: int) -> subprocess.Popen[bytes]:
    return work.run(output, "--part", f"{part}/{_NUM_PARTS}")


def _wait_for_work(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a process has begun a unit of work, or has ended."""
    while process.poll() is None:
        if log.exists() and any(line.split()[1] == str(process.pid) for line in _lines(log)):
            return
        time.sleep(0.01)


def _lines(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if len(line.split()) == 3]


def _check_log(log: Path, killed: set[int]) -> tuple[int, list[str]]:
    """Return how many units were begun again, and which of them should not have been."""
    begun = Counter[str]()
    left, faults = Counter[str](), list[str]()
    for line in _lines(log):
        event, pid, unit = line.split()
        begun[unit] += event == "begun"
        left[pid] += 1 if event == "begun" else -1
    for pid, number in left.items():
        if number > (int(pid) in killed):
            faults.append(f"{log}: process {pid} left {number} units unfinished")
    num_repeated = sum(begun.values()) - len(begun)
    if num_repeated > len(killed):
        faults.append(f"{log}: {num_repeated} units done again after {len(killed)} kills")
    return num_repeated, faults


def _require_success(process: subprocess.Popen[bytes], output: Path) -> None:
    if process.wait():
        sys.exit(
            f"{output}: exit code {process.returncode}\n{output.with_suffix('.err').read_text()}"
        )


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Kill parts at random moments and start them again.")
    parser.add_argument("bilm", metavar="BILM", help="a small biLM")
    parser.add_argument("--kills", type=int, default=100, help="how many of each command (100)")
    parser.add_argument("--format", default="npy", help="of the shards (npy)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="of the times; random by default"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
