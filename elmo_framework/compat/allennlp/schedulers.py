"""Learning rate schedulers of AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.rules import (
    LOGGED_ONLY,
    Member,
    Place,
    Rules,
    component,
    dropped,
    kept,
    only,
    renamed,
)
from elmo_framework.errors import shown

_WARMUP = renamed("warmup_steps")
_LAST = only(-1)


def _num_epochs(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop the length of a schedule where it is that of the training."""
    trained = _trained_epochs(here)
    if value == trained:
        here.note("dropped", "it is num_epochs of the trainer")
    else:
        here.problem(
            f"{shown(value)} is not num_epochs of the trainer, {shown(trained)}: a schedule ends "
            "with the training here"
        )
    return {}


def _num_steps(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("differs", f"the steps of the training are counted; AllenNLP takes {shown(value)}")
    return {}


_TIMES: Rules = {
    "num_epochs": _num_epochs,
    "num_steps_per_epoch": _num_steps,
    "last_epoch": _LAST,
}


def _trained_epochs(here: Place) -> Any:
    number = here.context.value("trainer", "num_epochs")
    return 20 if number is None else number


def _epochs(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate `step_size` to milestones, up to the last epoch."""
    last = _trained_epochs(here)
    if not all(isinstance(each, int) and 0 < each < 10_000 for each in (value, last)):
        here.problem(f"expected a number of epochs, not {shown(value)} (of {shown(last)})")
        return {}
    here.note("becomes", "milestones, at each multiple of it")
    return {"milestones": [*range(value, max(last, value + 1), value)]}


def _direction(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop the direction of a score where it is that of `validation_metric`."""
    rises = _metric_rises(here)
    # From AllenNLP 2.0 a loss is compared with its sign changed.
    fitting = ["max"] if rises else ["min"] if here.context.value("iterator") else ["min", "max"]
    if value not in fitting:
        here.problem(f"{shown(value)} is not the direction of validation_metric: {fitting[0]!r}")
    here.note("dropped", "validation_metric of the trainer has the direction")
    return {}


def _metric_rises(here: Place) -> bool:
    metric = here.context.value("trainer", "validation_metric")
    first = metric[0] if isinstance(metric, list) and metric else metric
    return isinstance(first, str) and first.startswith("+")


SCHEDULERS: dict[str, Member] = {
    "constant": Member("constant", {"last_epoch": _LAST}),
    "reduce_on_plateau": Member(
        "reduce_on_plateau",
        {
            "factor": kept,
            "patience": kept,
            "threshold": kept,
            "mode": _direction,
            "threshold_mode": only("rel"),
            "cooldown": only(0),
            "min_lr": only(0, 0.0),
            "eps": dropped("it concerns rates below 1e-8"),
            "verbose": LOGGED_ONLY,
            "last_epoch": _LAST,
        },
    ),
    "step": Member("multi_step", {"step_size": _epochs, "gamma": kept, "last_epoch": _LAST}),
    "multi_step": Member("multi_step", {"milestones": kept, "gamma": kept, "last_epoch": _LAST}),
    "exponential": Member("exponential", {"gamma": kept, "last_epoch": _LAST}, {"gamma": 0.1}),
    "noam": Member(
        "noam", {"model_size": kept, "warmup_steps": kept, "factor": kept, "last_epoch": _LAST}
    ),
    "slanted_triangular": Member(
        "slanted_triangular",
        {
            **_TIMES,
            "cut_frac": kept,
            "ratio": kept,
            "gradual_unfreezing": only(False),
            "discriminative_fine_tuning": only(False),
            "decay_factor": dropped("it belongs to discriminative_fine_tuning, which is off"),
        },
    ),
    "linear_with_warmup": Member(
        "linear_with_warmup", {**_TIMES, "warmup_steps": kept}, {"warmup_steps": 100}
    ),
    "polynomial_decay": Member(
        "linear_with_warmup",
        {
            **_TIMES,
            "warmup_steps": kept,
            "power": only(1, 1.0),
            "end_learning_rate": only(0, 0.0),
        },
    ),
    "constant_with_warmup": Member(
        "constant_with_warmup", {"num_warmup_steps": _WARMUP, "last_epoch": _LAST}
    ),
    "cosine_with_warmup": Member(
        "cosine_with_warmup",
        {
            "num_warmup_steps": _WARMUP,
            "num_training_steps": _num_steps,
            "num_cycles": only(0.5),
            "last_epoch": _LAST,
        },
    ),
}


def scheduler(here: Place, value: Any) -> Any:
    """Translate a LearningRateScheduler."""
    name = value.get("type") if isinstance(value, dict) else value
    has_mode = isinstance(value, dict) and value.get("mode") is not None
    if name == "reduce_on_plateau" and not has_mode:
        if _metric_rises(here):
            text = "the rate falls when the score stops rising; AllenNLP's mode is 'min'"
            here.note("differs", text)
        elif here.context.value("iterator") is None:
            text = "the rate falls when the loss stops falling; AllenNLP 2 changes its sign, and "
            here.note("differs", text + "its mode is 'min'")
    return component(here, value, SCHEDULERS, "LearningRateScheduler")


def unit_rate(here: Place, optimizer: Any) -> dict[str, Any]:
    """Return an optimizer whose rate is that of `noam`: it multiplies the rate here, not there."""
    here.at("lr").note("added", "1.0; in AllenNLP, noam is the rate itself, and lr has no effect")
    values = optimizer if isinstance(optimizer, dict) else {"type": "adam"}
    return {**values, "lr": 1.0}
