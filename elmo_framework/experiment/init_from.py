"""Start a training from the weights of an earlier run or of a biLM: `init_from`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elmo_framework.bilm.files.published import resolve_bilm
from elmo_framework.corpus.vocabulary_file import as_counts, read_vocabulary_file
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import InitFrom
from elmo_framework.experiment.run_directory import RunDirectory
from elmo_framework.io.archives import local_folder
from elmo_framework.model.model import Model
from elmo_framework.model.weights import load_weights


def initial_vocabularies(init_from: InitFrom) -> Vocabularies | None:
    """Return the vocabularies of a run or a biLM to start from; None if it has none.

    Raises:
        DataError: the run or the biLM does not exist.
    """
    run = _run(init_from)
    if run is not None:
        return Vocabularies.load(run.vocabulary)
    listed = resolve_bilm(init_from.path).vocabulary
    if not listed.is_file():
        return None
    return Vocabularies({"words": as_counts(read_vocabulary_file(listed))})


def load_initial_weights(init_from: InitFrom, model: Model[Any]) -> Mapping[str, Any] | None:
    """Load the weights of a run or a biLM to start from.

    Returns:
        The optimizer's state that belongs to them; None without a checkpoint.

    Raises:
        DataError: the run or the biLM does not exist.
        RunError: the weights are those of another model, or the run has none yet.
    """
    run = _run(init_from)
    if run is not None:
        best = run.best_checkpoint()
        if best is None and not run.weights.is_file():
            raise RunError(
                f"init_from: the run {run.path} has no weights: neither {run.weights.name} nor a "
                "checkpoint"
            )
        weights, optimizer_state = (run.load_weights(), None) if best is None else best
        load_weights(model, weights, source=f"init_from: the run {run.path}")
        return optimizer_state
    model.load_bilm(init_from.path)
    return None


def load_initial_optimizer(
    init_from: InitFrom,
    state: Mapping[str, Any] | None,
    optimizer: torch.optim.Optimizer,
    *,
    kind: str,
) -> bool:
    """Load the state of `load_initial_weights`; return whether there is one to continue with.

    The options stay those of the config, and `kind` is the registered name in it.

    Raises:
        RunError: the state is that of another optimizer, or of other parameters.
    """
    if state is None or init_from.reset_optimizer:
        return False
    run = RunDirectory(local_folder(init_from.path))
    before = run.read(run.config)["trainer"]["optimizer"]["type"]
    if before != kind:
        raise RunError(
            f"init_from: the run {run.path} was trained with the optimizer {before!r}, and now it "
            f"is {kind!r}; take the same, or set init_from.reset_optimizer to true"
        )
    if not _fits(state, optimizer):
        raise RunError(
            f"init_from: the run {run.path} trained other parameters; set "
            "init_from.reset_optimizer to true"
        )
    options = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state["state"], "param_groups": options})
    return True


def _fits(training: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> bool:
    """Return whether the state of an optimizer is that of these parameters, in these groups."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    shapes = [
        (parameters[number].shape, value.shape)
        for number, state in training["state"].items()
        for value in state.values()
        if number < len(parameters) and isinstance(value, Tensor) and value.dim()
    ]
    sizes = [
        [len(group["params"]) for group in groups]
        for groups in (training["param_groups"], optimizer.param_groups)
    ]
    return sizes[0] == sizes[1] and all(now == before for now, before in shapes)


def _run(init_from: InitFrom) -> RunDirectory | None:
    """Return the run to start from; None if it is a biLM."""
    run = RunDirectory(local_folder(init_from.path))
    return run if run.config.is_file() else None
