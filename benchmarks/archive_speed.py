"""Training and predicting with the same archives, ours beside AllenNLP 2.10.1, all types.

    PEERS=DIR SCRIPTS=DIR python benchmarks/archive_speed.py --data DIR --folder DIR --make
    PEERS=DIR SCRIPTS=DIR python benchmarks/archive_speed.py --data DIR --folder DIR

The first command lets AllenNLP make the archives: the models of `peer_configs.py`, with frozen
random vectors of words. The second loads them in two processes, one of ours and one of AllenNLP,
with one thread each, which take turns batch by batch. Batches are real data of similar length, as
many examples as the published configs have. An update is forward, backward, clipping and Adam on a
batch that is made beforehand; a prediction goes from examples to labels. A time is the median of
the rounds, on the CPU; a rate is that of all batches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from archive_agreement import run_peer
from measuring import say
from peer_configs import CONFIGS
from peer_data import KINDS, piece_name, write_piece

_HERE = Path(__file__).parent
_SIZES = {
    "crf_tagger": 64,
    "simple_tagger": 64,
    "srl": 80,
    "esim": 32,
    "decomposable_attention": 64,
    "bcn": 100,
    "basic_classifier": 100,
    "bidaf": 40,
    "coref": 1,
    "constituency_parser": 32,
}
"""How many examples a batch has."""

_OPTIMIZER = {"type": "adam", "lr": 0.001}
_WORK = ("training", "predicting")


class Side:
    """A process that measures what it is asked for, one line of JSON after the other."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**environment}
        )

    def ask(self, **question: Any) -> Any:
        """Return the answer to a question.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side has ended at {question}")
        return json.loads(line)

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> int:
    """Make the archives, or print a table of all types."""
    options = _options()
    if options.make:
        run_peer([_job(kind, options) for kind in options.only])
        return 0
    head = ("model", "batch", "work", "ours", "AllenNLP", "unit", "ratio", "on the clock")
    say(_line(*head) + "\n" + _line(*["---"] * len(head)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    script = [str(_HERE / "archive_speed_ours.py")]
    peer = [str(Path(os.environ["PEERS"]) / "an/bin/python"), "-W", "ignore"]
    peer_script = [str(_HERE / "archive_speed_allennlp.py"), *["--onednn"] * options.onednn]
    peer_environment = {**environment, "PYTHONPATH": os.environ["SCRIPTS"]}
    for kind in options.only:
        ours = Side([sys.executable, *script], environment)
        theirs = Side([*peer, *peer_script], peer_environment)
        say("\n".join(_rows(kind, ours, theirs, options)))
        ours.end()
        theirs.end()
    return 0


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--folder", type=Path, required=True, help="of the archives")
    parser.add_argument("--make", action="store_true", help="make the archives, measure nothing")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, metavar="TYPE")
    parser.add_argument("--batches", type=int, default=3, help="of each type (3)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (3)")
    parser.add_argument(
        "--onednn", action="store_true", help="AllenNLP with PyTorch's switch for oneDNN"
    )
    return parser.parse_args()


def _job(kind: str, options: Namespace) -> dict[str, Any]:
    """Write the data of a type; return what AllenNLP is to make."""
    folder = options.folder.absolute()
    data = folder / piece_name(kind)
    write_piece(kind, options.data, _SIZES[kind] * options.batches, data)
    config = json.loads(json.dumps(CONFIGS[kind]))
    config["train_data_path"] = str(data)
    config["trainer"] = {"optimizer": _OPTIMIZER, "grad_norm": 5.0, "num_epochs": 1}
    embedders = config["model"]["text_field_embedder"]["token_embedders"]
    embedders["tokens"]["trainable"] = False
    archive = str(folder / f"{kind}.tar.gz")
    job = {"name": kind, "config": config, "data": str(data), "archive": archive}
    return {**job, "num_updates": 0, "outputs": None}


def _rows(kind: str, ours: Side, theirs: Side, options: Namespace) -> list[str]:
    folder, size = options.folder.absolute(), _SIZES[kind]
    place = {"archive": str(folder / f"{kind}.tar.gz"), "data": str(folder / piece_name(kind))}
    with TemporaryDirectory() as temporary:
        plan = ours.ask(**place, size=size, run=f"{temporary}/run")
        if theirs.ask(**place, batches=plan["batches"]) != len(plan["batches"]):
            raise ValueError(f"{kind}: AllenNLP reads other examples")
        times: dict[tuple[str, int, int], list[Any]] = {}
        for number in range(1 + options.repeats):
            for work in _WORK:
                for batch in range(len(plan["batches"])):
                    for side, process in enumerate((ours, theirs)):
                        seconds = process.ask(work=work, batch=batch)
                        if number:  # the first round warms up
                            times.setdefault((work, batch, side), []).append(seconds)
    return [_row(kind, work, plan, times) for work in _WORK]


def _row(
    kind: str, work: str, plan: Mapping[str, Any], times: Mapping[tuple[str, int, int], list[Any]]
) -> str:
    batches = range(len(plan["batches"]))
    cpu, clock = (
        [
            sum(median(each[unit] for each in times[work, batch, side]) for batch in batches)
            for side in (0, 1)
        ]
        for unit in (0, 1)
    )
    amount = plan["num_tokens"]
    rates = [f"{amount / seconds:,.0f}" for seconds in cpu]
    ratios = [f"{theirs / ours:.2f}" for ours, theirs in (cpu, clock)]
    return _line(kind, str(_SIZES[kind]), work, *rates, "tokens/s", *ratios)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
