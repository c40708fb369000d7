"""The job of `elmo train`: from a config to a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from elmo_framework import console
from elmo_framework.config.load import Config
from elmo_framework.config.resolve import filled, with_absolute_paths
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.init_from import (
    initial_vocabularies,
    load_initial_optimizer,
    load_initial_weights,
)
from elmo_framework.experiment.metadata import RunRecord
from elmo_framework.experiment.model_card import write_model_card
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.files import repairable, replacing
from elmo_framework.model.model import Model
from elmo_framework.training.callback import Callback, RunLog
from elmo_framework.training.checkpointer import Checkpointer
from elmo_framework.training.console import Console, ResourceEstimate
from elmo_framework.training.evaluator import Evaluator, metric_problem
from elmo_framework.training.interrupt import Interrupt, StopRequestedError, interrupts
from elmo_framework.training.moving_average import AveragedWeights
from elmo_framework.training.parameter_groups import with_settings
from elmo_framework.training.process_group import (
    ProcessGroup,
    choose_device,
    process_group,
    report_slow_path,
)
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.trainer import Trainer, TrainingResult
from elmo_framework.training.unfreezing import grouped_optimizer

_ADVICE = "resume with --recover"


@dataclass(frozen=True)
class TrainedRun:
    """A finished training: the model with its best weights, and the metrics of the run."""

    assembly: Assembly
    metrics: dict[str, Any]


def train(
    config: Config,
    directory: Path,
    *,
    packages: Sequence[str] = (),
    force: bool = False,
    recover: bool = False,
) -> dict[str, Any]:
    """Check a config, train its model and save a run; return the metrics of the run.

    The arguments and errors are those of `train_assembly`.
    """
    return train_assembly(
        config, directory, packages=packages, force=force, recover=recover
    ).metrics


def train_assembly(
    config: Config,
    directory: Path,
    *,
    packages: Sequence[str] = (),
    force: bool = False,
    recover: bool = False,
    callbacks: Sequence[Callback] = (),
) -> TrainedRun:
    """Train as `train` does, and return the trained model too.

    Args:
        config: evaluated, with its overrides.
        directory: of the run.
        packages: plugins named on the command line, which the run records.
        force: remove the run in the directory.
        recover: continue the run in the directory.
        callbacks: called in addition to those of the config.

    Raises:
        ConfigError: the config has problems.
        RunError: the directory is in use, or the loss is not finite.
        DataError: the data cannot be read.
    """
    parsed, experiment = check_config(config).unwrap()
    filled_config = filled(with_absolute_paths(parsed))
    filled_config["plugins"] = sorted({*filled_config["plugins"], *packages})
    device = choose_device(experiment.trainer.device)
    run = RunDirectory(directory)
    with process_group(device, advice=_ADVICE) as group, ExitStack() as stack:
        if group.is_first:  # the others rely on its lock
            stack.enter_context(run.locked())
        record = RunRecord(parsed, experiment, config, filled_config, run)
        if group.is_first:
            record.write_config(force=force, recover=recover)
        group.wait()
        report_slow_path(device, group)
        vocabularies = _vocabularies(experiment, run, group)
        assembly = Assembly.build(experiment, device=device, vocabularies=vocabularies, group=group)
        return TrainedRun(assembly, _train(assembly, record, callbacks))


def _vocabularies(experiment: Experiment, run: RunDirectory, group: ProcessGroup) -> Vocabularies:
    """Return the vocabularies of a run; the first rank makes them once."""
    if group.is_first and not run.vocabulary.exists():
        init_from = experiment.init_from
        initial = None if init_from is None else initial_vocabularies(init_from)
        with replacing(run.vocabulary) as aside:
            (initial or experiment.count_vocabularies()).save(aside)
    group.wait()
    return Vocabularies.load(run.vocabulary)


def _train(
    assembly: Assembly, record: RunRecord, further_callbacks: Sequence[Callback]
) -> dict[str, Any]:
    experiment, model, group = assembly.experiment, assembly.model, assembly.group
    # The labels of the data may leave out a score; refused before any layer is computed.
    labels = assembly.vocabularies.counted("labels")
    if problem := metric_problem(experiment.trainer.validation_metric, model, labels):
        raise RunError(f"trainer.validation_metric: {problem}")
    if group.is_first:
        record.write_metadata(assembly)
    assembly.precompute()
    keep = experiment.trainer.checkpointer.keep_most_recent_by_count
    checkpointer = Checkpointer(record.run.checkpoints, keep=keep, group=group)
    init_from = None if checkpointer.folders() else experiment.init_from
    optimizer_state = None if init_from is None else load_initial_weights(init_from, model)
    test_evaluator = assembly.evaluator("test") if experiment.evaluate_on_test else None
    seed_everything(experiment.random_seed + group.rank.index)
    trainer = build_trainer(assembly, evaluator=assembly.evaluator("validation"))
    if init_from is not None:
        kind = record.filled["trainer"]["optimizer"]["type"]
        is_loaded = load_initial_optimizer(init_from, optimizer_state, trainer.optimizer, kind=kind)
        if group.is_first:
            state = "the state of its optimizer" if is_loaded else "a new optimizer"
            console.info(f"training starts from the weights of {init_from.path}, with {state}")
    with interrupts() as interrupt:
        callbacks = _callbacks(assembly, trainer, record.run, further_callbacks)
        with ExitStack() as stack, repairable(record.run.path, advice=_ADVICE):
            for callback in reversed(callbacks):
                stack.callback(callback.close)
            result = trainer.run(checkpointer, callbacks, interrupt)
        model.load_state_dict(checkpointer.best_weights(result.progress))
        metrics = _metrics(model, result) | _test_scores(test_evaluator, model, interrupt)
        _finish(assembly, record.run, metrics)
    return metrics


def build_trainer(assembly: Assembly, *, evaluator: Evaluator | None) -> Trainer:
    """Return what trains the model of an assembly on its training data.

    Args:
        assembly: of `Assembly.build`, precomputed.
        evaluator: of the validation data; None without any.

    Raises:
        RunError: `trainer.no_grad` leaves nothing to train, or a model that learns without
            gradients is trained by several processes.
        DataError: the training data cannot be read.
    """
    model, options = assembly.model, assembly.experiment.trainer
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if model.learns_without_gradients:
        if not assembly.group.is_alone:
            raise RunError("this model counts its training data; train it in one process")
        trained = [nn.Parameter(torch.empty(0))]  # an optimizer needs at least one
    if not trained:
        raise RunError("no parameter is left to train; see trainer.no_grad")
    if options.parameter_groups:
        groups = with_settings(model, trained, options.parameter_groups)
        optimizer = options.optimizer.create(groups)
    else:
        optimizer = grouped_optimizer(options.optimizer, model, trained, options.unfreezing)
    return Trainer(
        options=options,
        model=model,
        optimizer=optimizer,
        source=assembly.training_source(),
        evaluator=evaluator,
        average=AveragedWeights(model, options.averaged_decay),
        group=assembly.group,
        device=assembly.device,
    )


def _callbacks(
    assembly: Assembly, trainer: Trainer, run: RunDirectory, further: Sequence[Callback]
) -> Sequence[Callback]:
    """Return the callbacks of the first rank; the other ranks report nothing."""
    if not assembly.group.is_first:
        return []
    options = assembly.experiment.trainer
    configured = [callback.build(directory=run.path) for callback in options.callbacks]
    own: list[Callback] = [RunLog(run.path), Console(trainer), ResourceEstimate(trainer)]
    return [*own, *configured, *further]


def _test_scores(
    evaluator: Evaluator | None, model: Model[Any], interrupt: Interrupt
) -> dict[str, Any]:
    """Score the best weights on the test data, if that is wanted; with the tables of the scores.

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
    return {f"test_{name}": value for name, value in {**scores, **evaluator.tables}.items()}


def _finish(assembly: Assembly, run: RunDirectory, metrics: dict[str, Any]) -> None:
    if assembly.group.is_first:
        assembly.model.save_extras(run.path)
        run.write_json(run.metrics, metrics)
        run.save_weights(assembly.model.state_dict())
        write_model_card(run)
    assembly.group.wait()


def _metrics(model: Model[Any], result: TrainingResult) -> dict[str, Any]:
    progress = result.progress
    return {
        "best_step": progress.step if progress.best_step is None else progress.best_step,
        "training_steps": progress.step,
        "training_duration": round(progress.seconds, 3),
        "training_end": result.reason,
        "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "num_trainable_parameters": sum(
            parameter.numel() for parameter in model.parameters() if parameter.requires_grad
        ),
        **{f"best_validation_{name}": v for name, v in (progress.best_scores or {}).items()},
        **{f"best_validation_{name}": v for name, v in (progress.best_tables or {}).items()},
        **{f"validation_{name}": v for name, v in (progress.last_scores or {}).items()},
        **model.monitored_values(),
    }
