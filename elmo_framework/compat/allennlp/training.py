"""Optimizers and trainers of AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.parameter_groups import no_grad, parameter_groups
from elmo_framework.compat.allennlp.rules import (
    LOGGED_ONLY,
    NO_LIMIT,
    Member,
    Place,
    Rule,
    Rules,
    block,
    component,
    dropped,
    into,
    kept,
    only,
    unsupported,
    with_defaults,
)
from elmo_framework.compat.allennlp.schedulers import scheduler, unit_rate
from elmo_framework.errors import shown

_SHARED: Rules = {
    "lr": kept,
    "weight_decay": kept,
    "parameter_groups": parameter_groups,
}
_ADAM: Rules = {**_SHARED, "betas": kept, "eps": kept, "amsgrad": only(False)}
OPTIMIZERS: dict[str, Member] = {
    "adam": Member("adam", _ADAM),
    "dense_sparse_adam": Member(
        "adam", {key: rule for key, rule in _ADAM.items() if key not in ("amsgrad", "weight_decay")}
    ),
    "adamw": Member("adamw", _ADAM),
    "huggingface_adamw": Member(
        "adamw",
        {
            **{key: rule for key, rule in _ADAM.items() if key != "amsgrad"},
            "correct_bias": only(True),
        },
        {"lr": 1e-5, "weight_decay": 0.0},
    ),
    "adagrad": Member(
        "adagrad",
        {**_SHARED, "initial_accumulator_value": kept, "eps": kept, "lr_decay": only(0, 0.0)},
        {"lr": 0.01, "initial_accumulator_value": 0.0},
    ),
    "adadelta": Member("adadelta", {**_SHARED, "rho": kept, "eps": kept}),
    "sgd": Member(
        "sgd", {**_SHARED, "momentum": kept, "nesterov": kept, "dampening": only(0, 0.0)}
    ),
    "rmsprop": Member(
        "rmsprop",
        {**_SHARED, "alpha": kept, "eps": kept, "momentum": kept, "centered": only(False)},
    ),
}


def _device(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("becomes", "device")
    devices = value if isinstance(value, list) else [value]
    if not devices or any(not isinstance(each, int) or isinstance(each, bool) for each in devices):
        here.problem(f"expected the number of a GPU, or -1 for the CPU, not {shown(value)}")
        return {}
    if all(each < 0 for each in devices):
        return {"device": "cpu"}
    if len(devices) > 1:
        _processes(here, devices)
    elif devices[0] > 0:
        here.note(
            "differs", f"a run takes the first GPU; start it with CUDA_VISIBLE_DEVICES={value}"
        )
    here.note("differs", "without a GPU a run takes the CPU")
    return {"device": "auto"}


def _processes(here: Place, devices: list[Any]) -> None:
    here.note(
        "differs",
        f"one process for each GPU, of {len(devices)}: start it with torchrun --nproc-per-node "
        f"{len(devices)} -m elmo_framework train, or the batches are those of one process",
    )


_TORCHRUN = dropped("torchrun has it")


def _accelerator(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop the exchange of whole gradients; others divide the weights among the processes."""
    kind = value.get("type") if isinstance(value, dict) else value
    if kind == "torch":
        here.note("dropped", "processes of torchrun exchange their gradients")
    else:
        here.problem(f"{shown(kind)} has no counterpart here; only 'torch' has, with torchrun")
    return {}


def distributed(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the block of several GPUs: `torchrun` starts the processes here."""
    rules: Rules = {
        "cuda_devices": _several,
        "num_nodes": only(1),
        **dict.fromkeys(
            ("primary_address", "master_address", "primary_port", "master_port"), _TORCHRUN
        ),
        "ddp_accelerator": _accelerator,
    }
    block(here, value, rules, "distributed block")
    return {}


def _several(here: Place, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list) or not value:
        here.problem(f"expected a list of GPUs, not {shown(value)}")
    else:
        _processes(here, value)
    return {}


_AVERAGE: Rules = {
    "type": only("exponential"),
    "decay": kept,
    "numerator": only(1, 1.0),
    "denominator": only(10, 10.0),
}


def _average(here: Place, value: Any) -> Mapping[str, Any]:
    values = {"type": value} if isinstance(value, str) else value
    here.note("differs", "the decay is the same from the first step; AllenNLP's grows to it")
    ours = block(here, values, _AVERAGE, "moving average")
    return {here.key: with_defaults(here, ours, {"decay": 0.9999})}


def _keep(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the number of checkpoints; null and -1 keep all."""
    if here.key != "keep_most_recent_by_count":
        here.note("becomes", "checkpointer.keep_most_recent_by_count")
    return {"keep_most_recent_by_count": NO_LIMIT if value in (None, -1) else value}


def _every(unit: str, seconds: bool = False) -> Rule:
    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        here.note("becomes", f"checkpointer.save_every.{unit}")
        return {"save_every": {unit: value / 60 if seconds and is_number else value}}

    return rule


_SECONDS = _every("minutes", seconds=True)
_DELETED = dropped("it changes which old checkpoints are deleted only")
_CHECKPOINTER: Rules = {
    "type": only("default", "simple"),
    "num_serialized_models_to_keep": _keep,
    "keep_most_recent_by_count": _keep,
    "keep_most_recent_by_age": _DELETED,
    "keep_serialized_model_every_num_seconds": _DELETED,
    "save_every_num_seconds": _SECONDS,
    "model_save_interval": _SECONDS,
    "save_every_num_batches": _every("steps"),
    "save_completed_epochs": dropped("each evaluation is saved"),
}


def _checkpointer(here: Place, value: Any) -> Mapping[str, Any]:
    values = {"type": value} if isinstance(value, str) else value
    return {"checkpointer": block(here, values, _CHECKPOINTER, "Checkpointer")}


def _in_checkpointer(inner: Rule) -> Rule:
    return lambda here, value: {"checkpointer": dict(inner(here, value))}


_BOARD: Rules = {
    "summary_interval": kept,
    **dict.fromkeys(
        (
            "distribution_interval",
            "histogram_interval",
            "batch_size_interval",
            "should_log_parameter_statistics",
            "should_log_learning_rate",
        ),
        LOGGED_ONLY,
    ),
}
_CALLBACKS: dict[str, Member] = {"tensorboard": Member("tensorboard", _BOARD)}
_WITHOUT_EFFECT = ("console_logger", "track_epoch_callback", "confidence_checks", "sanity_checks")


def _callbacks(here: Place, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list):
        here.problem(f"expected a list of callbacks, not {shown(value)}")
        return {}
    ours = []
    for index, each in enumerate(value):
        place = Place(here.context, f"{here.path}[{index}]", str(index))
        name = each.get("type") if isinstance(each, dict) else each
        if name in _WITHOUT_EFFECT:
            place.note("dropped", "it changes no training here")
        else:
            ours.append(component(place, each, _CALLBACKS, "TrainerCallback"))
    return {here.key: ours}


def _board(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the `tensorboard_writer` of AllenNLP 1.x."""
    values = (
        {key: each for key, each in value.items() if key != "type"}
        if isinstance(value, dict)
        else value
    )
    here.note("becomes", "callbacks: ['tensorboard']")
    return {"callbacks": [{"type": "tensorboard", **block(here, values, _BOARD, "tensorboard")}]}


def _interval(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("becomes", "callbacks: [{type: 'tensorboard', summary_interval}]")
    return {"callbacks": [{"type": "tensorboard", "summary_interval": value}]}


def _precision(here: Place, value: Any) -> Mapping[str, Any]:
    if value is not True:
        return only(False)(here, value)
    here.note("becomes", "precision: 'bfloat16'")
    here.note("differs", "bfloat16 in place of float16")
    return {"precision": "bfloat16"}


def _one_score(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the score of the best weights; AllenNLP 2 may add several up."""
    match value:
        case [str(score)]:
            return {here.key: score}
        case list():
            here.problem("a sum of scores has no counterpart here; name one")
    return {here.key: value}


def _gradient_norm(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the largest norm of gradients; true computes it for callbacks."""
    if isinstance(value, bool):
        here.note("dropped", "nothing is rescaled")
        return {}
    return {here.key: value}


TRAINER: Rules = {
    "type": only("gradient_descent", "default"),
    "optimizer": into(
        "optimizer",
        lambda here, value: component(here, value, OPTIMIZERS, "Optimizer", default="adam"),
    ),
    "learning_rate_scheduler": into("learning_rate_scheduler", scheduler),
    **dict.fromkeys(
        (
            "num_epochs",
            "patience",
            "grad_clipping",
            "num_gradient_accumulation_steps",
        ),
        kept,
    ),
    "validation_metric": _one_score,
    "grad_norm": _gradient_norm,
    "no_grad": no_grad,
    "cuda_device": _device,
    "use_amp": _precision,
    "moving_average": _average,
    "checkpointer": _checkpointer,
    "num_serialized_models_to_keep": _in_checkpointer(_keep),
    "model_save_interval": _in_checkpointer(_SECONDS),
    "keep_serialized_model_every_num_seconds": _DELETED,
    "ddp_accelerator": _accelerator,
    **dict.fromkeys(("world_size", "local_rank", "distributed"), _TORCHRUN),
    "callbacks": _callbacks,
    "tensorboard_writer": _board,
    "summary_interval": _interval,
    "shuffle": lambda here, value: {},
    "momentum_scheduler": unsupported(),
    "batch_callbacks": unsupported(),
    "epoch_callbacks": unsupported(),
    "end_callbacks": unsupported(),
    "trainer_callbacks": unsupported(),
    "opt_level": unsupported("use use_amp"),
    **dict.fromkeys(
        (
            "histogram_interval",
            "should_log_parameter_statistics",
            "should_log_learning_rate",
            "log_batch_size_period",
        ),
        LOGGED_ONLY,
    ),
    "enable_default_callbacks": LOGGED_ONLY,
    "run_confidence_checks": dropped("the first batch is checked anyway"),
    "run_sanity_checks": dropped("the first batch is checked anyway"),
    "grad_scaling": dropped("bfloat16 needs no scaling"),
}


def trainer(here: Place, value: Any) -> Any:
    """Translate a Trainer without `no_grad`."""
    if isinstance(value, dict) and value.get("type") not in (None, "gradient_descent", "default"):
        name = shown(value["type"])
        here.at("type").missing(f"AllenNLP's Trainer {name} has no counterpart here")
        return None
    ours = block(here, value, TRAINER, "trainer")
    values = value if isinstance(value, dict) else {}
    if "shuffle" in values and here.context.value("iterator") is None:
        here.at("shuffle").problem("is a key for configs with an iterator")
    elif values.get("shuffle") is not None and not isinstance(values["shuffle"], bool):
        here.at("shuffle").problem(f"expected true or false, not {shown(values['shuffle'])}")
    elif values.get("shuffle") is True:
        here.at("shuffle").note("dropped", "training data is shuffled by default")
    schedule = ours.get("learning_rate_scheduler")
    if isinstance(schedule, dict) and schedule.get("type") == "noam":
        ours["optimizer"] = unit_rate(here.at("optimizer"), ours.get("optimizer"))
    return ours
