"""`elmo study`: many runs as one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

from elmo_framework.commands.command import ConfigCommand
from elmo_framework.config.arguments import AboveZero, Argument, Force
from elmo_framework.console import plural, render_table
from elmo_framework.io.outputs import Input, Output

if TYPE_CHECKING:
    from elmo_framework.study.reuse import ReusableRecord
    from elmo_framework.study.run import StudyResult
    from elmo_framework.study.state import StudyState

_FAILED = 1


@final
@dataclass(frozen=True, kw_only=True)
class RunStudy(ConfigCommand):
    """Train the runs of a study that are missing: configs, variants, seeds and fractions.

    Attributes:
        serialization_dir: the folder of the study.
        jobs: how many runs are trained at a time; by default as many as the CPU has threads for.
        is_final: score the finished runs on their test data, too.
        dry_run: list the runs and their states, with an estimate of the time that is left.
        force: remove runs and records of another config first.
        reuse: folders of other studies; what they have trained with an equal config, on the same
            data and biLM, is copied and not trained again.
    """

    name = "study"
    epilog = """\
examples:
  elmo study experiments/demo/study.jsonnet -s runs/study
  elmo study experiments/demo/study.jsonnet -s runs/study --dry-run
  elmo study experiments/demo/study.jsonnet -s runs/study --final
  elmo study experiments/paper/table2.jsonnet -s runs/table2 --reuse runs/table1

start it again to resume it. Several processes may work on one study at the same time. A run that
fails is reported, and does not stop the others; the exit code is then 1.
"""

    serialization_dir: Annotated[Path, Argument("DIR", flags=("-s",))]
    jobs: Annotated[AboveZero | None, Argument(flags=("-j",))] = None
    is_final: Annotated[bool, Argument(flags=("--final",))] = False
    dry_run: bool = False
    force: Force = False
    reuse: Annotated[Sequence[Path], Argument("DIR", takes_many=True)] = ()

    def outputs(self) -> Sequence[Output]:
        return [Output(self.serialization_dir, "--serialization-dir", is_folder=True)]

    def inputs(self) -> Sequence[Input]:
        return [Input(self.config, "CONFIG"), *(Input(each, "--reuse") for each in self.reuse)]

    def run(self) -> int:
        from elmo_framework import console
        from elmo_framework.analysis.statistics import distributions
        from elmo_framework.study.check import load_study, require_sound
        from elmo_framework.study.content import differing_content
        from elmo_framework.study.folder import StudyFolder
        from elmo_framework.study.report import write_results
        from elmo_framework.study.reuse import reusable_records, reuse_records
        from elmo_framework.study.run import (
            StudyResult,
            is_finished,
            remove_changed,
            run_study,
        )
        from elmo_framework.study.state import StudyState

        loaded = load_study(self.read_config(), external_variables=dict(self.ext_var))
        folder = StudyFolder(self.serialization_dir)
        state = StudyState(loaded.study, loaded.cells, folder, is_final=self.is_final)
        if self.dry_run:
            require_sound(loaded, state.unfinished_cells())
            print(_listed(state, reusable_records(state, self.reuse)))
            return 0
        distributions()
        result = StudyResult(0, ())
        if not is_finished(state):
            # What takes long to start does so before the check, with nothing computed here yet.
            with loaded.study.executor.start(self.jobs) as workers:
                require_sound(loaded, state.unfinished_cells())
                reuse_records(state, self.reuse)
                if self.force:
                    remove_changed(state)
                result = run_study(state, workers, packages=self.packages)
        pages = write_results(state)
        failed = f", {plural(len(result.failures), 'failure')}" if result.failures else ""
        failed += " (run the same command to try again)" if failed else ""
        console.info(f"{_done(state, result)}{failed}; records: {folder.results}")
        for warning in differing_content(state.records()):
            console.info(f"warning: {warning}")
        print(*pages, sep="\n")
        return _FAILED if result.failures else 0


def _done(state: StudyState, result: StudyResult) -> str:
    """Write how many runs were done; if there were none to do, how many are."""
    if result.num_done or result.failures:
        return f"{plural(result.num_done, 'run')} done"
    counts = state.num_runs_by_state()
    return f"nothing to do: {counts.get('done', 0)} of {sum(counts.values())} runs are done"


def _listed(state: StudyState, reusable: Sequence[ReusableRecord]) -> str:
    from elmo_framework.study.estimate import minutes_left

    runs, origins = state.runs(), {each.record.name: each.record.origin for each in reusable}
    rows = [
        (name, f"in {origins[name]}" if name in origins else state.state(run))
        for run in runs
        for name in [run.plan.name]
    ]
    minutes = minutes_left(state, [run for run in runs if run.plan.name not in origins])
    left = (
        "no estimate: no run of this study is finished"
        if minutes is None
        else f"{timedelta(seconds=round(60 * minutes))} of training left"
    )
    num_done = sum(row[1] == "done" for row in rows)
    num_further = state.num_further_runs
    if num_changed := sum(row[1] == "changed" for row in rows):
        left += f"; {plural(num_changed, 'run')} of another config, which only --force replaces"
    if num_further:
        left += f"; the search adds {plural(num_further, 'run')} to this list"
    num_runs = len(rows) + num_further
    return f"{render_table(('run', 'state'), rows)}\n\n{num_done}/{num_runs} done; {left}"
