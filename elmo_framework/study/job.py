"""One run of a study, from its training to its record, in a process of its own."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import Timeout

from elmo_framework import components, console
from elmo_framework.config.plugins import load_plugins
from elmo_framework.errors import ElmoFrameworkError, RunError, StoppedError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.experiment import Split
from elmo_framework.experiment.load_run import load
from elmo_framework.experiment.references import recorded_digests
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.experiment.train import train_assembly
from elmo_framework.model.head import Head
from elmo_framework.study.changes import digest_of_test_data
from elmo_framework.study.executor import JobEnd, RunJob
from elmo_framework.study.folder import StudyFolder
from elmo_framework.study.plan import Cell
from elmo_framework.study.record import Record, read_record, recorded_versions, write_record
from elmo_framework.study.run_plan import RunPlan
from elmo_framework.study.search import PrunedError
from elmo_framework.training.callback import METRICS_LOG, read_log

_SHOWN_LINES = 3
_START = re.compile(r"\d{4}-\d\d-\d\dT\S+ \S+")
"""The first line that each start of a run adds to its log: time and name."""
_ERROR = "error: "

_TRAINING = (
    "best_step",
    "training_steps",
    "training_end",
    "num_parameters",
    "num_trainable_parameters",
)


def execute(job: RunJob) -> JobEnd:
    """Train a run or resume it, then write its record; messages go to its log.

    Never raises: an error is written to the log, and is the message of the result.
    """
    folder, name = StudyFolder(job.folder), job.plan.name
    try:
        with folder.lock(name).acquire(timeout=0), _messages_to(folder.log(name)):
            return _execute(job, folder)
    except Timeout:
        return JobEnd(name, "busy")
    except OSError as error:  # of the lock or the log, as on a full disk
        console.info(f"{name}: {error}")
        return JobEnd(name, "failed", str(error))


def log_tail(log: Path) -> str:
    """Return the last lines with text that the last start of a run has logged.

    Of a run that ended with an error, these are lines of its message, without the progress before.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if _START.fullmatch(line):
            lines = []
        elif line.startswith(_ERROR):
            lines = [line]
        else:
            lines.append(line)
    return "\n".join(lines[-_SHOWN_LINES:])


def _execute(job: RunJob, folder: StudyFolder) -> JobEnd:
    name = job.plan.name
    console.info(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {name}")
    try:
        components.load()
        load_plugins(job.packages, asked_by="--include-package")
        load_plugins(job.plan.experiment_config().plugins, asked_by=f"{job.plan.source}: plugins")
        _do(job, folder)
    except (StoppedError, KeyboardInterrupt) as stop:
        console.info(str(stop) or "interrupted")
        console.info("the study recovers this run when it is started again")
        return JobEnd(name, "stopped")
    except (ElmoFrameworkError, OSError) as error:
        console.info(f"{_ERROR}{error}")
    except Exception:  # noqa: BLE001  (reported like any other end of a run)
        console.info(traceback.format_exc())
    else:
        return JobEnd(name, "done")
    return JobEnd(name, "failed", log_tail(folder.log(name)))


def _do(job: RunJob, folder: StudyFolder) -> None:
    """Bring a run to the end that is asked for, from wherever an earlier process left it."""
    path, assembly = folder.record(job.plan.name), None
    if not path.exists():
        assembly = _train(job, folder)
    record = read_record(path)
    if job.is_final and record.test is None:
        assembly = assembly or _load(job, folder)
        test = job.plan.test_data_path
        scores = _score(assembly, test, folder.terms(job.plan.name, "test"))
        digests = dict(record.digests)
        if test is not None:
            digests["test"] = digest_of_test_data(assembly.experiment, Path(test))
        write_record(path, replace(record, test=scores, digests=digests))


def _train(job: RunJob, folder: StudyFolder) -> Assembly | None:
    """Train a run and write its record; return None if the search has ended it early."""
    plan, run = job.plan, folder.run(job.plan.name)
    callback = None
    if job.search is not None and plan.trial is not None:
        callback = job.search.callback(plan.trial, folder=folder.search(plan.cell))
    try:
        trained = train_assembly(
            plan.experiment_config(),
            run.path,
            packages=job.packages,
            recover=True,
            callbacks=[] if callback is None else [callback],
        )
    except PrunedError as error:
        console.info(str(error))
        write_record(folder.record(plan.name), _record_of_pruned(plan, run, str(error)))
        return None
    assembly, metrics = trained.assembly, trained.metrics
    scores = _score(assembly, None, folder.terms(plan.name, "validation"), split="validation")
    record = _record(plan, run, validation=scores, training=metrics)
    record = replace(record, monitored=assembly.model.monitored_values())
    write_record(folder.record(plan.name), record)
    return assembly


def _record(
    plan: RunPlan,
    run: RunDirectory,
    *,
    validation: Mapping[str, float],
    training: Mapping[str, Any],
) -> Record:
    metadata = run.read(run.metadata)
    digests = metadata["digests"]
    return Record(
        **plan.recorded,
        validation=validation,
        training={key: training[key] for key in _TRAINING if key in training},
        minutes=round(training["training_duration"] / 60, 3),
        experiment=Cell(plan, (plan.seed,)).experiment,
        digests={
            **digests,
            "data": _by_relative_path(digests["data"]),
            "bilm": recorded_digests(run),
        },
        versions=recorded_versions(metadata),
    )


def _by_relative_path(digests: Mapping[str, str]) -> dict[str, str]:
    """Name files as seen from the working directory: records are read on other machines."""
    here = Path.cwd()
    return {
        str(path.relative_to(here) if path.is_relative_to(here) else path): digest
        for path, digest in ((Path(name), digest) for name, digest in digests.items())
    }


def _record_of_pruned(plan: RunPlan, run: RunDirectory, reason: str) -> Record:
    """Return the record of a trial that the search has ended: the scores so far."""
    *_, (_, last) = read_log(run.path / METRICS_LOG)
    scores = {key: value for key, value in last.items() if key not in ("step", "seconds")}
    training = {
        "training_steps": last["step"],
        "training_end": reason,
        "training_duration": last["seconds"],
    }
    record = _record(plan, run, validation=scores, training=training)
    return replace(record, is_pruned=True)


def _score(
    assembly: Assembly, path: Path | str | None, terms: Path, *, split: Split = "test"
) -> dict[str, float]:
    """Score the best weights, and write what each example adds to the scores, if it predicts.

    Args:
        assembly: a trained one.
        path: the data; None for those of the split of its config.
        terms: the file to write.
        split: of the config.

    Raises:
        RunError: `path` is None, and the config has no test data.
    """
    if not isinstance(assembly.model, Head):
        return assembly.evaluate(path or assembly.experiment.paths[split])
    scored = assembly.score(path, split=split)
    terms.parent.mkdir(parents=True, exist_ok=True)
    scored.terms.save(terms)
    return assembly.model.scores(scored.sums)


def _load(job: RunJob, folder: StudyFolder) -> Assembly:
    """Load a finished run.

    Raises:
        RunError: only its record is left.
    """
    run, record = folder.run(job.plan.name), folder.record(job.plan.name)
    if not run.config.is_file():
        raise RunError(
            f"{run.path}: these weights are gone, and --final needs them; remove {record} to train "
            "them again"
        )
    return load(run.path, packages=job.packages)


@contextmanager
def _messages_to(log: Path) -> Iterator[None]:
    """Append what is written to the standard streams to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        yield
