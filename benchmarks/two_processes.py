"""Tokens per second of pretraining by one process on one core, and by two on two cores.

    python benchmarks/two_processes.py CORPUS/training

Two processes that know nothing of each other show what they lose because caches, memory bandwidth
and clock rates are shared. Two processes of one job lose, in addition, what it takes to exchange
gradients and to wait for each other. The batch of a process is the same in all three cases.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measuring import say
from usage import ELMO, ROOT, run

_TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
_CASES: Mapping[str, tuple[int, Sequence[str]]] = {
    "one process": (1, ELMO),
    "two, independent": (2, ELMO),
    "two, one job": (1, (*_TORCHRUN, "-m", "elmo_framework")),
}
"""The number of jobs at a time, and what starts each."""


def main() -> int:
    """Measure and print."""
    arguments = _arguments()
    rates: dict[str, list[float]] = {name: [] for name in _CASES}
    for _ in range(arguments.repeats):
        for name in _CASES:
            rates[name].append(_tokens_per_second(name, arguments))
    of_one = statistics.median(rates["one process"])
    say("| processes | tokens/s | efficiency |\n|---|---|---|")
    for name, each in rates.items():
        rate = statistics.median(each)
        say(f"| {name} | {rate:,.0f} | {rate / of_one / (1 if name == 'one process' else 2):.0%} |")
    return 0


def _tokens_per_second(name: str, arguments: Namespace) -> float:
    """Return the sum over all jobs."""
    number, launcher = _CASES[name]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(number) as pool:
        outputs = [Path(folder) / str(index) for index in range(number)]
        commands = [[*launcher, *_training(output, arguments)] for output in outputs]
        list(pool.map(run, commands))
        return sum(map(_logged_rate, outputs))


def _training(output: Path, arguments: Namespace) -> list[str]:
    changes = {
        "train_data_path": str(arguments.corpus),
        "data_loader.batch_size": arguments.batch_size,
        "trainer.num_steps": arguments.steps,
        "trainer.num_epochs": None,
    }
    flags = [word for key in changes for word in ("-o", f"{key}={json.dumps(changes[key])}")]
    without = ["validation_dataset_reader", "validation_data_path"]
    flags += [word for key in without for word in ("-o", f"{key}=null")]
    return ["train", str(ROOT / arguments.config), "-s", str(output), *flags]


def _logged_rate(run_directory: Path) -> float:
    """Return the median over the records of the log but the first, which has the start in it."""
    lines = (run_directory / "steps.jsonl").read_text().splitlines()
    return statistics.median(json.loads(line)["tokens_per_second"] for line in lines[1:])


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("corpus", metavar="CORPUS", type=Path, help="a part of a prepared corpus")
    parser.add_argument("--config", default="experiments/pretrain/mini.jsonnet")
    parser.add_argument("--batch-size", type=int, default=64, help="rows of a process (64)")
    parser.add_argument("--steps", type=int, default=60, help="updates (60)")
    parser.add_argument("--repeats", type=int, default=1, help="rounds (1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
