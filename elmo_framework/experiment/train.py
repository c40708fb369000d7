"""The job of `elmo train`: from a checked configuration to a finished run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch

from elmo_framework import console
from elmo_framework.config.load import Config
from elmo_framework.config.resolve import filled, with_absolute_paths
from elmo_framework.config.types import Lazy
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import DataError, RunError, StoppedError
from elmo_framework.experiment.data_sets import (
    evaluation_source,
    prepare_model,
    training_source,
)
from elmo_framework.experiment.experiment import Experiment, InitFrom, Split
from elmo_framework.experiment.init_from import load_initial_optimizer, load_initial_weights
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.experiment.training_job import TrainingJob
from elmo_framework.io.files import repairable
from elmo_framework.model.model import Model
from elmo_framework.training.callback import Callback, Callbacks, RunLog
from elmo_framework.training.checkpointer import BestCheckpoint, Checkpointer
from elmo_framework.training.console import Console
from elmo_framework.training.estimate import Estimate
from elmo_framework.training.evaluator import Evaluator, metric_problem
from elmo_framework.training.interrupt import Interrupt, StopRequestedError, interrupts
from elmo_framework.training.moving_average import AveragedWeights
from elmo_framework.training.process_group import (
    ProcessGroup,
    choose_device,
    process_group,
    report_slow_path,
)
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.trainer import Trainer, TrainingResult

_TO_GO_ON = "resume with --recover"


def train(
    config: Config,
    checked: Lazy[Experiment],
    directory: Path,
    *,
    packages: list[str],
    force: bool = False,
    recover: bool = False,
) -> dict[str, Any]:
    """Train the model of an experiment and leave a run behind; return its metrics.

    Args:
        config: as given.
        checked: the same, parsed and checked (`check_config`).
        directory: of the run.
        packages: plugins named on the command line, which are kept with the run.
        force: remove the run that is in the folder.
        recover: go on with the run that is in the folder.

    Raises:
        ConfigError: a component refuses its arguments, or a stated size is wrong.
        RunError: the folder is in use, or the loss is no number.
        DataError: the data cannot be read.
    """
    experiment = checked.build()
    written = filled(with_absolute_paths(checked))
    written["plugins"] = sorted({*written["plugins"], *packages})
    device = choose_device(experiment.trainer.device)
    run = RunDirectory(directory)
    with process_group(device, to_go_on=_TO_GO_ON) as group, _alone_in(run, group):
        job = TrainingJob(checked, experiment, config, written, run, group, device)
        job.prepare(force=force, recover=recover)
        report_slow_path(device, group)
        return _train(job)


def _train(job: TrainingJob) -> dict[str, Any]:
    vocabularies = job.vocabularies()
    model = build_model(job.experiment, vocabularies, job.device)
    _require_metric(job.experiment.trainer.validation_metric, model)
    job.record(model)
    prepare_model(job.experiment, model, job.device)
    checkpointer = Checkpointer(
        job.run.checkpoints,
        keep=job.experiment.trainer.checkpointer.keep_most_recent_by_count,
        group=job.group,
    )
    init_from = None if checkpointer.folders() else job.experiment.init_from
    best = None if init_from is None else load_initial_weights(init_from, model)
    test_evaluator = (
        _evaluator(job, model, vocabularies, "test") if job.experiment.evaluate_on_test else None
    )
    seed_everything(job.experiment.random_seed + job.group.rank.index)
    trainer = build_trainer(
        job.experiment,
        model,
        vocabularies,
        evaluator=_evaluator(job, model, vocabularies, "validation"),
        group=job.group,
        device=job.device,
    )
    if init_from is not None:
        _begin(job, init_from, best, trainer.optimizer)
    with interrupts() as interrupt:
        with (
            closing(_observers(job, trainer)) as callbacks,
            repairable(job.run.path, advice=_TO_GO_ON),
        ):
            result = trainer.run(checkpointer, callbacks, interrupt)
        model.load_state_dict(checkpointer.best_weights(result.progress))
        metrics = _metrics(model, result) | _test_scores(test_evaluator, model, interrupt)
        _finish(job, model, metrics)
    return metrics


def build_model(
    experiment: Experiment, vocabularies: Vocabularies, device: torch.device
) -> Model[Any]:
    """Return the model as the seed of an experiment makes it, without gradients where it says so.

    Args:
        experiment: built.
        vocabularies: of its data.
        device: where the model is to be.
    """
    seed_everything(experiment.random_seed)
    model = experiment.model.build(vocabularies=vocabularies).to(device)
    for pattern in experiment.trainer.no_grad:
        for name, parameter in model.named_parameters():
            if re.search(pattern, name):
                parameter.requires_grad_(False)
    return model


def build_trainer(
    experiment: Experiment,
    model: Model[Any],
    vocabularies: Vocabularies,
    *,
    evaluator: Evaluator | None,
    group: ProcessGroup,
    device: torch.device,
) -> Trainer:
    """Return what trains a model on the training data of its experiment.

    Args:
        experiment: built.
        model: of `build_model`, its parts prepared (`prepare_model`).
        vocabularies: those that the model was built with.
        evaluator: scores on the validation data; None without any.
        group: the processes that train together.
        device: where the model is.

    Raises:
        RunError: `trainer.no_grad` leaves nothing to train.
        DataError: the training data cannot be read.
    """
    options = experiment.trainer
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise RunError("no parameter is left to train; see trainer.no_grad")
    return Trainer(
        options=options,
        model=model,
        optimizer=options.optimizer.create(trained),
        source=training_source(experiment, model, vocabularies, rank=group.rank),
        evaluator=evaluator,
        average=AveragedWeights(model, options.averaged_decay),
        group=group,
        device=device,
    )


def _begin(
    job: TrainingJob,
    init_from: InitFrom,
    best: BestCheckpoint | None,
    optimizer: torch.optim.Optimizer,
) -> None:
    kind = job.filled["trainer"]["optimizer"]["type"]
    goes_on = load_initial_optimizer(init_from, best, optimizer, kind=kind)
    if job.group.is_first:
        state = "with the state of its optimizer" if goes_on else "with a new optimizer"
        console.info(f"training goes on from the weights of {init_from.path}, {state}")


def _evaluator(
    job: TrainingJob, model: Model[Any], vocabularies: Vocabularies, split: Split
) -> Evaluator | None:
    path = job.experiment.paths[split]
    if path is None:
        return None
    examples = job.experiment.examples(split)
    source = evaluation_source(
        job.experiment, model, vocabularies, examples=examples, rank=job.group.rank
    )
    precision = job.experiment.trainer.precision
    evaluator = Evaluator(source, group=job.group, device=job.device, precision=precision)
    _sanity_check(evaluator, model, path=path)
    return evaluator


def _require_metric(metric: str, model: Model[Any]) -> None:
    """Refuse a metric that the labels of the data leave out, before any layer is computed."""
    if problem := metric_problem(metric, model):
        raise RunError(f"trainer.validation_metric: {problem}")


def _sanity_check(evaluator: Evaluator, model: Model[Any], *, path: Path) -> None:
    """Find out before hours of training what would stop the first evaluation.

    Raises:
        DataError: the data has a label that was not seen in training.
    """
    try:
        evaluator.sanity_check(model)
    except DataError as error:
        raise DataError(str(error), path=path) from error


def _observers(job: TrainingJob, trainer: Trainer) -> Callbacks:
    """Return what the first process tells of its training; the others tell nothing."""
    if not job.group.is_first:
        return Callbacks([])
    configured = [lazy.build(directory=job.run.path) for lazy in job.experiment.trainer.callbacks]
    own: list[Callback] = [RunLog(job.run.path), Console(trainer), Estimate(trainer)]
    return Callbacks([*own, *configured])


def _test_scores(
    evaluator: Evaluator | None, model: Model[Any], interrupt: Interrupt
) -> dict[str, float]:
    """Score the best weights on the test data, if that is wanted.

    Raises:
        StoppedError: the user asked for a stop; `--recover` scores them again.
    """
    if evaluator is None:
        return {}
    try:
        scores = evaluator.scores(model, interrupt)
    except StopRequestedError as stop:
        raise StoppedError(
            f"stopped by {stop.signal_name} during the evaluation on the test data; --recover "
            "repeats it"
        ) from None
    return {f"test_{name}": value for name, value in scores.items()}


def _finish(job: TrainingJob, model: Model[Any], metrics: dict[str, Any]) -> None:
    """Keep the best weights and the metrics of the run."""
    if job.group.is_first:
        model.save_extras(job.run.path)
        job.run.write_json(job.run.metrics, metrics)
        job.run.save_weights(model.state_dict())
    job.group.wait()


def _metrics(model: Model[Any], result: TrainingResult) -> dict[str, Any]:
    progress = result.progress
    return {
        "best_step": progress.step if progress.best_step is None else progress.best_step,
        "training_steps": progress.step,
        "training_duration": round(progress.seconds, 3),
        "training_end": result.reason,
        "num_parameters": sum(held.numel() for held in model.parameters()),
        "num_trainable_parameters": sum(
            held.numel() for held in model.parameters() if held.requires_grad
        ),
        **{f"best_validation_{name}": v for name, v in (progress.best_scores or {}).items()},
        **{f"validation_{name}": v for name, v in (progress.last_scores or {}).items()},
        **model.monitored_values(),
    }


@contextmanager
def _alone_in(run: RunDirectory, group: ProcessGroup) -> Iterator[None]:
    """Let the first process lock the folder; the others rely on it."""
    if group.is_first:
        with run.locked():
            yield
    else:
        yield
