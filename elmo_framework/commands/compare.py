"""`elmo compare`: whether some runs are better than others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

from elmo_framework.commands.command import Command, ResultFormat, output_files
from elmo_framework.commands.inputs import run_bilm_inputs, run_inputs
from elmo_framework.config.arguments import (
    AboveZero,
    Argument,
    Device,
    Force,
    Plugins,
    RunBiLms,
    whole_number,
)
from elmo_framework.console import plural, render_table
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.analysis.comparison import Comparison, MetricComparison
    from elmo_framework.analysis.scored_run import ScoredRun


@final
@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Compare runs with others on one file: scores, intervals, p-values, changed examples.

    Attributes:
        runs: the folders of runs that differ in their seeds only, or their records in a study.
        to: the runs to compare with.
        file: data to score on; by default the validation data of the runs.
        test: score on the test data of the runs' configs instead, or of their records.
        metric: a score, or a pattern such as f1-measure-*; may be given several times; by default
            the score that selected the weights.
        output_file: write the changed examples there, with all predictions for them: as JSON, or as
            a table without predictions if it ends in .tsv.
        force: overwrite FILE of --output-file.
        num_resamples: number of bootstrap resamples and of random exchanges (default: %(default)s).
        seed: of the resamples (default: %(default)s).
    """

    name = "compare"
    epilog = """\
examples:
  elmo compare runs/elmo --to runs/baseline
  elmo compare runs/elmo-* --to runs/baseline-* --file test.txt
  elmo compare runs/elmo-* --to runs/baseline-* --test
  elmo compare runs/elmo-* --to runs/baseline-* --metric f1-measure-overall --metric 'f1-measure-*'
  elmo compare runs/elmo --to runs/baseline --output-file changes.tsv
  elmo compare results/ner/elmo/*.json --to results/ner/none/*.json     records of a study

The interval and p are over examples, and over seeds if a side has several runs. If both sides have
the same seeds, runs are compared in pairs; otherwise each side is resampled on its own. p (Holm) is
adjusted for all metrics of the table. See docs/compare.md.
"""

    runs: Annotated[Sequence[Path], Argument("RUN", is_positional=True)]
    to: Annotated[Sequence[Path], Argument("RUN", takes_many=True)]
    file: Annotated[Path | None, Argument("FILE", excludes="data")] = None
    test: Annotated[bool, Argument(excludes="data")] = False
    metric: Annotated[Sequence[str], Argument("NAME")] = ()
    output_file: Annotated[Path | None, Argument("FILE")] = None
    force: Force = False
    num_resamples: AboveZero = 10_000
    seed: Annotated[int, Argument(parse=whole_number)] = 0
    run_bilms: RunBiLms = ()
    device: Device = "auto"
    packages: Plugins = ()
    format: ResultFormat = "text"

    def outputs(self) -> Sequence[Output]:
        return output_files({"--output-file": self.output_file}, force=self.force)

    def inputs(self) -> Sequence[Input]:
        named = [*((run, "RUN") for run in self.runs), *((run, "--to") for run in self.to)]
        runs = [each for run, name in named for each in run_inputs(run, name)]
        file = [] if self.file is None else [Input(self.file, "--file")]
        return [*runs, *run_bilm_inputs(self.run_bilms), *file]

    def run(self) -> int:
        from elmo_framework.analysis.comparison import compare
        from elmo_framework.io.files import writing

        with ExitStack() as files:
            output = None
            if self.output_file is not None:
                output = files.enter_context(writing(self.output_file))
            comparison = compare(
                self.runs,
                self.to,
                file=self.file,
                split="test" if self.test else "validation",
                metrics=self.metric,
                num_resamples=self.num_resamples,
                seed=self.seed,
                device=self.device,
                packages=self.packages,
                bilms=self.run_bilms,
            )
            if output is not None and self.output_file is not None:
                is_table = self.output_file.suffix == ".tsv"
                output.writelines(_change_lines(comparison) if is_table else _changes(comparison))
        print(_json(comparison) if self.format == "json" else _text(comparison))
        return 0


def _json(comparison: Comparison) -> str:
    return json.dumps(
        {
            **_setting(comparison),
            "metrics": [asdict(each) for each in comparison.metrics],
            "by_class": [asdict(each) for each in comparison.by_class],
            "by_length": [asdict(each) for each in comparison.by_length],
        },
        indent=2,
    )


def _setting(comparison: Comparison) -> dict[str, Any]:
    return {
        "runs": [run.name for run in comparison.runs],
        "others": [run.name for run in comparison.others],
        "seeds": comparison.seeds,
        "num_examples": comparison.num_examples,
        "num_groups": comparison.num_groups,
    }


def _text(comparison: Comparison) -> str:
    first = comparison.metrics[0].metric
    headers = ["", "runs", "others", "difference", "95 % interval", "p", "p (Holm)"]
    headers += ["p (randomization)", "error reduction"]
    lines = [
        _description(comparison),
        "",
        render_table(headers, map(_row, comparison.metrics)),
        "",
        f"{plural(len(comparison.changes), 'example')} of {comparison.num_examples:,} "
        f"change {first}:",
    ]
    counts = [*comparison.by_class, *comparison.by_length]
    rows = [
        [each.name, *(f"{n:,}" for n in (each.better, each.worse, each.equal))] for each in counts
    ]
    return "\n".join([*lines, render_table(["", "better", "worse", "equal"], rows)])


def _description(comparison: Comparison) -> str:
    sizes = len(comparison.runs), len(comparison.others)
    text = f"{plural(comparison.num_examples, 'example')}"
    if comparison.num_groups < comparison.num_examples:
        text += f" in {plural(comparison.num_groups, 'group')}"
    if sizes == (1, 1):
        return f"{text}; one run on each side: the interval is over examples, not over seeds"
    if comparison.seeds is not None:
        return f"{text}; {sizes[0]} runs on each side, in pairs of one seed"
    return f"{text}; {sizes[0]} and {sizes[1]} runs, whose seeds are not in pairs"


def _row(each: MetricComparison) -> list[str]:
    difference, bounds = each.difference, each.interval
    interval = "undefined" if bounds is None else "{:+.4f} to {:+.4f}".format(*bounds)
    means = [f"{sum(side) / len(side):.4f}" for side in (each.runs, each.others)]
    reduction = "" if each.error_reduction is None else f"{100 * each.error_reduction:.1f} %"
    p_values = [
        "" if p is None else f"{p:.4f}" for p in (difference.p, each.p_holm, each.p_randomization)
    ]
    return [each.metric, *means, f"{difference.value:+.4f}", interval, *p_values, reduction]


def _changes(comparison: Comparison) -> Iterator[str]:
    changes = [
        asdict(change)
        | {
            "runs": _predictions(comparison.runs, change.number),
            "others": _predictions(comparison.others, change.number),
        }
        for change in comparison.changes
    ]
    whole = {**_setting(comparison), "metric": comparison.metrics[0].metric, "changes": changes}
    yield json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _predictions(runs: Sequence[ScoredRun], number: int) -> Mapping[str, Any]:
    return {run.name: run.predictions[number - 1] for run in runs if run.predictions}


def _change_lines(comparison: Comparison) -> Iterator[str]:
    yield "number\teffect\tlength\tclasses\n"
    for each in comparison.changes:
        yield f"{each.number}\t{each.effect:.3g}\t{each.length}\t{' '.join(each.classes)}\n"
