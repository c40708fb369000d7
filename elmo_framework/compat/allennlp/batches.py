"""Data loaders of AllenNLP 1.0 and later, and the iterators before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.language_models import is_language_model
from elmo_framework.compat.allennlp.rules import (
    NO_LIMIT,
    Member,
    Place,
    Rule,
    Rules,
    block,
    component,
    dropped,
    kept,
    only,
    unsupported,
)
from elmo_framework.errors import shown

_SPEED = dropped("it changes speed and memory only")


def _flag(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate `shuffle`: true is the default here, for training data."""
    if value is True:
        here.note("dropped", "training data is shuffled by default")
        return {}
    return {"shuffle": value}


def _of_batches(text: str) -> Rule:
    """Return a rule for a key with another effect here; it has none on windows of text."""

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        if is_language_model(here.context):
            here.note("dropped", "windows of running text have equal lengths")
        else:
            here.note("differs", text)
        return {}

    return rule


_SORTING_KEYS = _of_batches("examples are sorted by the number of their words")
_NOISE = _of_batches("batches differ by sorting pools of 50 batches, in place of noise")


def _max_samples(here: Place, value: Any) -> Mapping[str, Any]:
    match value:
        case [str(), int(number)]:
            is_windows = is_language_model(here.context)
            here.note("becomes", "batch_size" if is_windows else "max_tokens, padding included")
            return {"max_tokens": number}
    here.problem(f"expected [key, number], not {shown(value)}")
    return {}


_BUCKET: Rules = {
    "batch_size": kept,
    "sorting_keys": _SORTING_KEYS,
    "padding_noise": _NOISE,
    "drop_last": only(False),
}
_SAMPLERS: dict[str, Member] = {
    "bucket": Member("bucket", {**_BUCKET, "shuffle": _flag}, implied={"bucketing": True}),
    "bucket_batch_sampler": Member(
        "bucket", {**_BUCKET, "shuffle": _flag}, implied={"bucketing": True}
    ),
    "max_tokens_sampler": Member(
        "max_tokens_sampler",
        {"max_tokens": kept, "sorting_keys": _SORTING_KEYS, "padding_noise": _NOISE},
        implied={"bucketing": True, "batch_size": NO_LIMIT},
    ),
    "basic": Member(
        "basic",
        {
            "batch_size": kept,
            "drop_last": only(False),
            "sampler": lambda here, value: {"shuffle": _is_random(here, value)},
        },
    ),
}


def _is_random(here: Place, value: Any) -> bool | None:
    name = value.get("type") if isinstance(value, dict) else value
    if name not in ("random", "sequential") or (isinstance(value, dict) and len(value) > 1):
        here.problem(f"{shown(value)} has no counterpart here; use random or sequential")
    return None if name == "random" else False


def _sampler(here: Place, value: Any) -> Mapping[str, Any]:
    ours = component(here, value, _SAMPLERS, "BatchSampler")
    if ours is None:
        return {}
    keys = (
        "batch_size" if is_language_model(here.context) else "batch_size or max_tokens, bucketing"
    )
    here.note("becomes", f"data_loader: {keys}")
    # The default of `shuffle` is that of a sampler, not that of a loader.
    return {"shuffle": None, **{key: each for key, each in ours.items() if key != "type"}}


_LOADER: Rules = {
    "batch_size": kept,
    "shuffle": _flag,
    "batch_sampler": _sampler,
    "drop_last": only(False),
    "batches_per_epoch": unsupported("see trainer.num_steps and trainer.evaluate_every"),
    "collate_fn": unsupported(),
    "sampler": lambda here, value: {"shuffle": _is_random(here, value)},
    **dict.fromkeys(
        (
            "num_workers",
            "max_instances_in_memory",
            "start_method",
            "cuda_device",
            "quiet",
            "pin_memory",
            "timeout",
            "multiprocessing_context",
        ),
        _SPEED,
    ),
}
_LOADERS = {
    name: Member("batches", _LOADER)
    for name in ("multiprocess", "simple", "pytorch_dataloader", "default")
}


def data_loader(here: Place, value: Any) -> Any:
    """Translate a DataLoader of AllenNLP 1.0 and later."""
    ours = component(here, value, _LOADERS, "DataLoader", default="multiprocess")
    if ours is None:
        return None
    has_flag = isinstance(value, dict) and (value.get("shuffle") is True or "sampler" in value)
    if "shuffle" not in ours and not has_flag:
        here.at("shuffle").note("added", "false, the default of AllenNLP")
        ours["shuffle"] = False
    return {key: each for key, each in ours.items() if key != "type" and each is not None}


_ITERATOR: Rules = {
    "batch_size": kept,
    "maximum_samples_per_batch": _max_samples,
    "instances_per_epoch": unsupported("see trainer.num_steps and trainer.evaluate_every"),
    "cache_instances": _SPEED,
    "max_instances_in_memory": _SPEED,
    "track_epoch": dropped("no model here reads the epoch"),
    "skip_smaller_batches": only(False),
}
_ITERATORS: dict[str, Member] = {
    "basic": Member("basic", _ITERATOR),
    "bucket": Member(
        "bucket",
        {
            **_ITERATOR,
            "sorting_keys": _SORTING_KEYS,
            "padding_noise": _NOISE,
            "biggest_batch_first": dropped("it changes the order of one epoch only"),
        },
        implied={"bucketing": True},
    ),
}


def iterator(here: Place, value: Any) -> Any:
    """Translate a DataIterator of AllenNLP before 1.0."""
    if isinstance(value, dict) and value.get("type") == "multiprocess":
        here.note("dropped", "multiprocess: it changes speed only")
        rules: Rules = {
            "base_iterator": lambda here, value: {"base": iterator(here, value)},
            "num_workers": _SPEED,
            "output_queue_size": _SPEED,
        }
        values = {key: each for key, each in value.items() if key != "type"}
        return block(here, values, rules, "MultiprocessIterator").get("base")
    ours = component(here, value, _ITERATORS, "DataIterator")
    if ours is None:
        return None
    ours.pop("type")
    if here.context.value("trainer", "shuffle") is False:
        Place(here.context).at("trainer").at("shuffle").note("becomes", "data_loader.shuffle")
        ours["shuffle"] = False
    return ours
