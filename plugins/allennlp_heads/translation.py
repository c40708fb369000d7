"""Translate AllenNLP's configs of these heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from elmo_framework.compat.allennlp import (
    MODEL_RULES,
    Member,
    Pair,
    Place,
    attention,
    encoder,
    feedforward,
    into,
    output_layer,
    register_model,
)

_LAST_LAYER = "output_logit"


def register_translations() -> None:
    """Add the types of this plugin to those that are translated."""
    register_model("decomposable_attention", _DECOMPOSABLE_ATTENTION, _PARTS, _aggregate_names)


def _aggregate(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the last layers: theirs end in the labels, ours add that layer."""
    if isinstance(value, dict) and value.keys() & {"output_dims", "pool_sizes"}:
        here.problem("expected the keys of a FeedForward, not those of a Maxout")
        return {}
    layers = output_layer(here, value).get("output_layer", {})
    ours = {key: each for key, each in layers.items() if key != "type"}
    return {here.key: ours} if ours else {}


def _aggregate_names(model: Mapping[str, Any]) -> Iterator[Pair]:
    options = model.get("aggregate_feedforward")
    number = options.get("num_layers", 0) if isinstance(options, dict) else 0
    ours = [f"aggregate_feedforward.linear_layers.{layer}" for layer in range(number)]
    for layer, place in enumerate([*ours, _LAST_LAYER]):
        for name in ("weight", "bias"):
            yield f"_aggregate_feedforward._linear_layers.{layer}.{name}", f"{place}.{name}"


_PARTS = [
    ("_premise_encoder", "premise_encoder", "premise_encoder"),
    ("_hypothesis_encoder", "hypothesis_encoder", "hypothesis_encoder"),
    ("_attend_feedforward._module", "attend_feedforward", "attend_feedforward"),
    ("_compare_feedforward._module", "compare_feedforward", "compare_feedforward"),
]
_DECOMPOSABLE_ATTENTION = Member(
    "decomposable_attention",
    {
        **MODEL_RULES,
        "attend_feedforward": into("attend_feedforward", feedforward),
        "compare_feedforward": into("compare_feedforward", feedforward),
        "aggregate_feedforward": _aggregate,
        "matrix_attention": attention("dot_product"),
        "similarity_function": attention("dot_product"),
        "premise_encoder": into("premise_encoder", encoder),
        "hypothesis_encoder": into("hypothesis_encoder", encoder),
    },
)
