"""Trains tasks with and without ELMo, with several seeds, and lays out their scores.

A run is one `elmo train` of `experiments/TASK/{baseline,elmo}.jsonnet` with the folder's
`small.libsonnet` laid over it, on all training examples or on a small share of them. Runs that are
finished are not run again and those that were interrupted go on, so that this script can be
stopped and started as one likes, with the same options: it refuses a finished run of another
configuration. When it is stopped or killed, its trainings save a checkpoint and end. The scores
are those of the development data, which also chose the best epoch.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from children import Children, ending_children
from measuring import say

from elmo_framework.config.load import Config
from elmo_framework.experiment.config_changes import differences
from elmo_framework.io.files import write_text

_EXPERIMENTS = Path(__file__).parents[1] / "experiments"
_ALL = 1.0


@dataclass(frozen=True)
class Task:
    """What is measured of a task.

    Attributes:
        score: the figure of `metrics.json`.
        epochs: with small shares of the training examples.
        evaluations: how many such a run has.
        seeds: of the runs with all training examples.
    """

    score: str
    epochs: Mapping[float, int]
    evaluations: int = 10
    seeds: tuple[int, ...] = (1,)


SEEDS = (1, 2, 3)
TASKS = {
    "ner": Task("f1-measure-overall", {0.01: 100, 0.1: 32}, seeds=SEEDS),
    "sst": Task("accuracy", {0.05: 10}, seeds=SEEDS),
    "snli": Task("accuracy", {0.02: 40}, evaluations=5, seeds=SEEDS),
    "srl": Task("f1-measure-overall", {0.02: 40}, evaluations=5),
    "coreference": Task("coref_f1", {0.1: 30}, evaluations=5),
    "squad": Task("f1", {0.05: 30}, evaluations=5),
}


class Run(NamedTuple):
    """One training.

    Attributes:
        task: its name.
        fraction: of the training examples.
        variant: which biLM is used.
        seed: of the run, and of the choice of examples.
    """

    task: str
    fraction: float
    variant: str
    seed: int

    @property
    def folder(self) -> str:
        """Its place below the folder of all runs."""
        return f"{self.task}/{self.fraction:g}-{self.variant}-{self.seed}"


def main() -> int:
    """Train what is missing, print the table; return 1 when a run failed."""
    arguments = _arguments()
    bilms = {"baseline": None, "random": arguments.random_bilm, "elmo": arguments.bilm}
    variants = [name for name in bilms if name == "baseline" or bilms[name]]
    runs = list(_runs(arguments, variants))
    for run in runs:
        _require_same(run, arguments.runs, bilms[run.variant])
    codes = [0]
    if not arguments.table_only:
        for task in arguments.tasks:
            _write_configs(arguments.runs / task, task)
        with ThreadPoolExecutor(arguments.jobs) as pool, ending_children() as children:
            train = partial(_train, runs=arguments.runs, children=children)
            codes += pool.map(lambda run: train(run, bilm=bilms[run.variant]), runs)
    say(table(arguments.runs, runs, variants))
    return int(any(codes))


def _runs(arguments: Namespace, variants: Sequence[str]) -> Iterator[Run]:
    for name in arguments.tasks:
        task = TASKS[name]
        shares = (*task.epochs, _ALL)
        for fraction in arguments.fractions or shares:
            if fraction not in shares:
                known = ", ".join(f"{share:g}" for share in shares)
                raise SystemExit(f"{name}: {fraction:g} is none of its shares {known}")
            seeds = task.seeds if fraction == _ALL else SEEDS
            for seed in arguments.seeds or seeds:
                for variant in variants:
                    yield Run(name, fraction, variant, seed)


def _write_configs(folder: Path, task: str) -> None:
    """Write the two configurations of a task that its runs are trained by."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("baseline.jsonnet", "elmo.jsonnet"):
        parts = [_EXPERIMENTS / task / part for part in (name, "small.libsonnet")]
        write_text(folder / name, " + ".join(f"(import '{part}')" for part in parts) + "\n")


def _train(run: Run, runs: Path, bilm: str | None, children: Children) -> int:
    folder = runs / run.folder
    if (folder / "metrics.json").exists():
        return 0
    config = folder.with_name(_config_name(bilm))
    command = [sys.executable, "-m", "elmo_framework", "train", str(config), "-s", str(folder)]
    for override in _overrides(run, bilm):
        command += ["-o", override]
    if (folder / "checkpoints").exists():
        command.append("--recover")
    log = folder.with_name(f"{folder.name}.log")
    with log.open("a", encoding="utf-8") as file:
        code = children.run(command, output=file)
    say(f"{run.folder}: exit {code}{f' (log: {log})' if code else ''}", file=sys.stderr)
    return code


def _require_same(run: Run, runs: Path, bilm: str | None) -> None:
    """Refuse to count a finished run that another configuration trained."""
    folder = runs / run.folder
    if not (folder / "metrics.json").exists():
        return
    with TemporaryDirectory() as configs:
        _write_configs(Path(configs), run.task)
        asked = Config.load(Path(configs) / _config_name(bilm), overrides=_overrides(run, bilm))
    if changed := differences(Config.load(folder / "config.json").raw, asked.raw):
        raise SystemExit(
            f"{folder}: this run is finished, and differs from what is asked for in "
            f"{'; '.join(changed)}; ask for the same, or choose other --runs"
        )


def _config_name(bilm: str | None) -> str:
    return "elmo.jsonnet" if bilm else "baseline.jsonnet"


def _overrides(run: Run, bilm: str | None) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in _changes(run, bilm).items()]


def _changes(run: Run, bilm: str | None) -> dict[str, Any]:
    """Return what a run changes in its configuration."""
    changes: dict[str, Any] = {"random_seed": run.seed}
    if run.fraction != _ALL:
        task = TASKS[run.task]
        epochs = task.epochs[run.fraction]
        changes |= {
            "train_fraction": run.fraction,
            "trainer.num_epochs": epochs,
            "trainer.evaluate_every": {"epochs": max(1, epochs // task.evaluations)},
            "trainer.patience": None,
        }
    if bilm:
        for place in _elmo_places(run.task):
            changes |= {f"{place}.bilm": bilm, f"{place}.cache": "disk"}
    return changes


def _elmo_places(task: str) -> list[str]:
    """Return where ELMo stands in the configuration of a task."""
    return list(_embedders(Config.load(_EXPERIMENTS / task / "elmo.jsonnet").raw["model"], "model"))


def _embedders(held: Mapping[str, Any], path: str) -> Iterator[str]:
    if held.get("type") == "elmo_token_embedder":
        yield path
    for key, inner in held.items():
        if isinstance(inner, Mapping):
            yield from _embedders(inner, f"{path}.{key}")


def table(runs_folder: Path, runs: Sequence[Run], variants: Sequence[str]) -> str:
    """Lay out the scores in Markdown: a line for each task and share of its training examples."""
    heading = ["task", "share", "seeds", *variants, "error less by", "minutes"]
    rows = [heading, ["---"] * len(heading)]
    for task, fraction in dict.fromkeys((run.task, run.fraction) for run in runs):
        metrics = {
            variant: list(_metrics(runs_folder, runs, Run(task, fraction, variant, 0)))
            for variant in variants
        }
        scores = {name: _scores(task, held) for name, held in metrics.items()}
        minutes = [f"{mean(_minutes(held)):.0f}" if held else "" for held in metrics.values()]
        seeds = " / ".join(str(len(held)) for held in metrics.values())
        shown = [_shown(scores[variant]) for variant in variants]
        less = _error_less_by(scores["baseline"], scores.get("elmo", []))
        rows.append([task, f"{fraction:g}", seeds, *shown, less, " / ".join(minutes)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _metrics(folder: Path, runs: Sequence[Run], like: Run) -> Iterator[Mapping[str, Any]]:
    for run in runs:
        path = folder / run.folder / "metrics.json"
        if run._replace(seed=like.seed) == like and path.exists():
            yield json.loads(path.read_text(encoding="utf-8"))


def _scores(task: str, metrics: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return per cent; the figures of all tasks are shares of one."""
    return [100 * held[f"best_validation_{TASKS[task].score}"] for held in metrics]


def _minutes(metrics: Sequence[Mapping[str, Any]]) -> list[float]:
    return [held["training_duration"] / 60 for held in metrics]


def _shown(scores: Sequence[float]) -> str:
    if len(scores) < 2:
        return "".join(f"{score:.1f}" for score in scores)
    return f"{mean(scores):.1f} ± {stdev(scores):.1f}"


def _error_less_by(before: Sequence[float], after: Sequence[float]) -> str:
    """Return the relative reduction of the error, as the paper's Table 1 has it."""
    if not (before and after):
        return ""
    return f"{(mean(after) - mean(before)) / (100 - mean(before)):.1%}"


def _arguments() -> Namespace:
    parser = ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/tasks"), help="folder of all runs")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--bilm", default="mini", help="of the runs with ELMo (mini)")
    parser.add_argument("--random-bilm", help="one of the same size that was not trained")
    parser.add_argument(
        "--fractions", nargs="+", type=float, help="shares of the training examples"
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="1 2 3, or 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--table-only", action="store_true", help="train nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
