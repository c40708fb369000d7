"""What a training goes on from, instead of chance: an earlier run, or a biLM in its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import InitFrom
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.model.model import Model
from elmo_framework.model.weights import load_weights
from elmo_framework.training.checkpointer import BestCheckpoint


def initial_vocabularies(init_from: InitFrom) -> Vocabularies | None:
    """Return the words and labels of what training goes on from; None where none are kept.

    Raises:
        DataError: there is no such run or biLM.
    """
    run = _run(init_from)
    if run is not None:
        return Vocabularies.load(run.vocabulary)
    listed = resolve_bilm(init_from.path).vocabulary
    if not listed.is_file():
        return None
    return Vocabularies({"words": as_counts(read_vocabulary_file(listed))})


def load_initial_weights(init_from: InitFrom, model: Model[Any]) -> BestCheckpoint | None:
    """Give a model the weights that it goes on from.

    Returns:
        What a run has kept of its best weights, for `load_initial_optimizer`.

    Raises:
        DataError: there is no such run or biLM.
        RunError: they are those of another model, or the run has none yet.
    """
    run = _run(init_from)
    if run is not None:
        best = run.best_checkpoint()
        if best is None and not run.weights.is_file():
            raise RunError(
                f"init_from: the run {run.path} has no weights: neither {run.weights.name} nor a "
                "checkpoint"
            )
        weights = run.load_weights() if best is None else best.weights
        load_weights(model, weights, source=f"init_from: the run {run.path}")
        return best
    model.load_bilm(init_from.path)
    return None


def load_initial_optimizer(
    init_from: InitFrom, best: BestCheckpoint | None, optimizer: torch.optim.Optimizer, *, kind: str
) -> bool:
    """Give an optimizer what it had gathered; its rates and the like stay as they are.

    Args:
        init_from: what training goes on from.
        best: what `load_initial_weights` returned.
        optimizer: over the parameters that are trained.
        kind: the name that it is registered under.

    Returns:
        whether there was anything to give; otherwise the optimizer starts anew.

    Raises:
        RunError: it was another optimizer, or over other parameters.
    """
    if best is None or init_from.reset_optimizer:
        return False
    run = RunDirectory(Path(init_from.path))
    before = run.read_config()["trainer"]["optimizer"]["type"]
    if before != kind:
        raise RunError(
            f"init_from: the run {run.path} was trained with the optimizer {before!r}, and now it "
            f"is {kind!r}; take the same, or set init_from.reset_optimizer to true"
        )
    if not _fits(best.training, optimizer):
        raise RunError(
            f"init_from: the run {run.path} trained other parameters; set "
            "init_from.reset_optimizer to true"
        )
    options = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": best.training["state"], "param_groups": options})
    return True


def _fits(training: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> bool:
    """Tell whether what an optimizer had gathered is about these parameters."""
    parameters = [held for group in optimizer.param_groups for held in group["params"]]
    gathered = [
        (parameters[number].shape, held.shape)
        for number, of_one in training["state"].items()
        for held in of_one.values()
        if number < len(parameters) and isinstance(held, Tensor) and held.dim()
    ]
    num_before = sum(len(group["params"]) for group in training["param_groups"])
    return num_before == len(parameters) and all(shape == kept for shape, kept in gathered)


def _run(init_from: InitFrom) -> RunDirectory | None:
    """Return the run that is named; None where it is a biLM alone."""
    run = RunDirectory(Path(init_from.path))
    return run if run.config.is_file() else None
