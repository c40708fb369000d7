"""Runs our measurements beside those of other implementations and compares them.

Every measurement is a fresh process that prints one line of JSON. They run one after the other,
ours and the others in turn, several rounds long, so that a slow minute of the machine hits all.
A figure is the median of its rounds. A configuration of ours is compared with the same one of
another implementation, or with the best that it has where it has no such one.

The others come from two folders: `--peers`, where they are installed (`an/bin/python` for
AllenNLP, `tf/bin/python` for TensorFlow) with `data/sentences.txt` and a biLM a size in `data/`,
and `--scripts` with the scripts that measure them. Without them ours run alone, on random
weights and the sentences of the demo.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from children import tied
from comparison_table import Figures, figures_of, summary, table
from measurements import NAMES, Command, Places, commands
from measuring import say
from published_sizes import write_random_bilm

_DEMO_SENTENCES = Path(__file__).parents[1] / "experiments/demo/lm_train.txt"
_OWN_SIZES = ("original", "small")


def main() -> int:
    """Measure, print tables, write all lines; return 1 when a measurement failed."""
    arguments = _arguments()
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        places = _places(arguments, Path(folder))
        for name in arguments.only or NAMES:
            chosen = commands(name, places, is_quick=arguments.quick)
            results[name] = {held: [] for held in chosen}
            for command, line in rounds(chosen, arguments):
                results[name][command].append(line)
                if arguments.output_file:
                    _write(arguments.output_file, results)
            say(f"\n## {name}\n\n{table(_figures(results[name]))}")
    say(f"\n## Who is faster\n\n{summary({name: _figures(r) for name, r in results.items()})}")
    return int(
        any(len(lines) < arguments.repeats for r in results.values() for lines in r.values())
    )


def rounds(
    chosen: Mapping[str, Command], arguments: Namespace
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run each command as often as asked, in turn; yield what they print.

    Args:
        chosen: by their names, under which a failure is told too.
        arguments: `repeats` says how often, `threads` on how many threads of each process, `peers`
            where the others are installed.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    if arguments.peers:
        environment["PEERS"] = str(arguments.peers.absolute())
    for number in range(arguments.repeats):
        for name, command in chosen.items():
            say(f"round {number + 1}: {name}", file=sys.stderr)
            line = _run(command, environment, ["--threads", str(arguments.threads)])
            if line:
                yield name, line


def _run(
    command: Command, environment: Mapping[str, str], more: Sequence[str]
) -> dict[str, Any] | None:
    """Run a command in a fresh process; say so and return nothing when it fails."""
    ended = subprocess.run(
        [*tied(command.words), *more],
        cwd=command.directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode or not printed:
        say(f"failed: {' '.join(command.words)}\n{ended.stderr[-2000:]}", file=sys.stderr)
        return None
    line: dict[str, Any] = json.loads(printed[-1])
    return line


def _figures(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Figures]:
    return {name: figures_of(printed) for name, printed in lines.items() if printed}


def _places(arguments: Namespace, scratch: Path) -> Places:
    """Return where models, sentences and the others are; make what is missing."""
    if arguments.peers and arguments.scripts:
        peers, scripts = arguments.peers.absolute(), arguments.scripts.absolute()
        data = peers / "data"
        return Places(data, data / "sentences.txt", arguments.device, peers, scripts)
    for size in _OWN_SIZES:
        write_random_bilm(size, scratch / size)
    return Places(scratch, _DEMO_SENTENCES, arguments.device)


def _write(path: Path, results: Mapping[str, Any]) -> None:
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    path.write_text(json.dumps({"machine": machine, "measurements": results}, indent=2) + "\n")


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Compare our speed with that of other implementations.")
    parser.add_argument("--peers", type=folder, help="the folder in which the others are installed")
    parser.add_argument(
        "--scripts", type=folder, help="the folder of the scripts that measure them"
    )
    parser.add_argument("--only", choices=NAMES, action="append", help="repeatable; else all")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (3)")
    parser.add_argument("--threads", type=int, default=2, help="of each process (2)")
    parser.add_argument("--device", default="cpu", help="of ours: cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="few sentences and steps")
    parser.add_argument("--output-file", type=Path, help="where all lines are written as JSON")
    return parser.parse_args()


def folder(text: str) -> Path | None:
    """Read a folder; nothing stands for none, as from a variable that is not set."""
    return Path(text) if text else None


if __name__ == "__main__":
    sys.exit(main())
