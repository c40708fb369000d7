"""How fast each head is trained, beside AllenNLP's of the same size on the same batches.

    python benchmarks/head_peers.py --peers DIR --scripts DIR

A file of batches is written a head; then ours and AllenNLP's take turns, each in a fresh process
that makes an update of every batch once to warm up and once with the clock on. An update is
forward, backward, and the clipping with the optimizer. The time of a batch is the median of the
rounds, that of a head the mean of its batches. The ratios are those of the processor's time, which
other work on the machine changes little, and of the time on the clock.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from compare import folder, rounds
from head_batches import HEADS, Batches, write_batches
from head_step import Updates
from measurements import Command
from measuring import add_threads_argument, report, say, update_times

from elmo_framework import components
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.io.process import keep_freed_memory

_HERE = Path(__file__).parent
_DEVICE = torch.device("cpu")
_OURS, _ALLENNLP = "ours", "AllenNLP"


def main() -> int:
    """Measure one file of batches, or all heads beside AllenNLP; return 1 when one failed."""
    arguments = _arguments()
    components.load()
    if arguments.measure:
        _measure(arguments.measure, arguments.threads)
        return 0
    times = f"{_OURS}, ms a step", f"{_ALLENNLP}, ms a step", "ratio", "ratio on the clock"
    columns = "head", "batch", "parameters, ours / theirs", *times
    say(f"{_line(*columns)}\n{_line(*['---'] * len(columns))}")
    is_complete = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.only or HEADS:
            lines = _compare(name, Path(scratch) / f"{name}.json", arguments)
            is_complete &= all(len(held) == arguments.repeats for held in lines.values())
            if all(lines.values()):
                say("\n".join(_rows(name, lines)))
    return int(not is_complete)


def _measure(path: Path, num_threads: int) -> None:
    """Time our updates on the batches of a file."""
    torch.set_num_threads(num_threads)
    keep_freed_memory()
    held = Batches.read(path)
    experiment = held.experiment(path)
    vocabularies = Vocabularies({name: Counter(counts) for name, counts in held.counts.items()})
    model = Assembly.build(experiment, device=_DEVICE, vocabularies=vocabularies).model
    updates = Updates(model, experiment.trainer, _DEVICE)
    collate = model.task.collator(vocabularies, model.indexers)
    batches = [collate(examples) for examples in held.examples]
    report(
        bench="head_peers",
        torch=torch.__version__,
        threads=num_threads,
        lengths=[max(map(model.task.num_tokens, examples)) for examples in held.examples],
        batch_size=len(held.examples[0]),
        parameters=sum(parameter.numel() for parameter in updates.parameters),
        **update_times([partial(updates.update, batch) for batch in batches]),
        loss=updates.loss,
    )


def _compare(name: str, path: Path, arguments: Namespace) -> Mapping[str, list[dict[str, Any]]]:
    """Return the lines of all rounds of a head.

    Raises:
        ValueError: the heads do not have the numbers of parameters that are expected.
    """
    write_batches(HEADS[name], path)
    commands = {
        _OURS: Command([sys.executable, str(Path(__file__)), "--measure", str(path)], _HERE),
        _ALLENNLP: Command(
            [
                str(arguments.peers.absolute() / "an/bin/python"),
                *("-W", "ignore", str(_HERE / "head_peers_allennlp.py"), str(path)),
                *("--scripts", str(arguments.scripts.absolute())),
            ],
            _HERE,
        ),
    }
    lines: dict[str, list[dict[str, Any]]] = {side: [] for side in commands}
    for side, line in rounds(commands, arguments):
        lines[side].append(line)
    counts = {side: {line["parameters"] for line in held} for side, held in lines.items()}
    if all(lines.values()) and counts[_ALLENNLP] != {
        count + HEADS[name].surplus for count in counts[_OURS]
    }:
        raise ValueError(f"{name}: the numbers of parameters differ otherwise than known: {counts}")
    return lines


def _rows(name: str, lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the row of a head, and one for each of its batches."""
    ours, other = lines[_OURS], lines[_ALLENNLP]
    counts = f"{ours[0]['parameters']:,} / {other[0]['parameters']:,}"
    size = f"{ours[0]['batch_size']} at once"
    work, clock = (
        (_medians(ours, unit), _medians(other, unit)) for unit in ("processor_ms", "clock_ms")
    )
    of_batches = [
        _line(name, f"up to {length} words", "", *_compared(*times))
        for length, *times in zip(ours[0]["lengths"], *work, *clock, strict=True)
    ]
    return [_line(name, size, counts, *_compared(*map(mean, (*work, *clock)))), *of_batches]


def _compared(ours: float, other: float, our_clock: float, other_clock: float) -> tuple[str, ...]:
    ratios = f"{other / ours:.2f}", f"{other_clock / our_clock:.2f}"
    return f"{ours:,.0f}", f"{other:,.0f}", *ratios


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _medians(lines: Sequence[Mapping[str, Any]], unit: str) -> list[float]:
    """Return the time of each batch."""
    return [median(times) for times in zip(*(line[unit] for line in lines), strict=True)]


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Compare the training of each head with AllenNLP's.")
    parser.add_argument("--peers", type=folder, help="the folder with an/bin/python of AllenNLP")
    parser.add_argument("--scripts", type=folder, help="the folder of allennlp_compat.py")
    parser.add_argument("--only", choices=HEADS, action="append", help="repeatable; else all")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (3)")
    parser.add_argument("--measure", type=Path, help="time ours on a file of batches, no more")
    add_threads_argument(parser)
    arguments = parser.parse_args()
    if not (arguments.measure or (arguments.peers and arguments.scripts)):
        parser.error("--peers and --scripts are needed, or --measure")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
