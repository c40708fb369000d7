"""Our configs in AllenNLP's form: the rules, and those of encoders, poolers and layers.

Every key of a block has a rule. What AllenNLP cannot do is a problem, and all are collected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeAlias

from torch import nn

from elmo_framework.compat.allennlp.rules import Place, Rule, Rules, dropped, into, kept
from elmo_framework.errors import dotted, truncated

Write: TypeAlias = Callable[[Place, Any, nn.Module], Any]
"""Writes a block whose sizes are those of a module."""

TRAINING_ONLY = dropped("it concerns training")


def expressible(*values: Any, reason: str = "") -> Rule:
    """Return a rule for a key of which AllenNLP has only these values.

    Args:
        values: that need no key in AllenNLP.
        reason: what AllenNLP does in their place.
    """
    written = [json.dumps(value) for value in values]

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        if json.dumps(value) not in written:
            only = f"; only {', '.join(written)} has" if written else ""
            text = truncated(json.dumps(value))
            here.problem(f"{text} has no counterpart in AllenNLP{only}{reason and ': '}{reason}")
        return {}

    return rule


def block(here: Place, values: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """Write the keys of an object; null is the default of all keys without a rule."""
    theirs: dict[str, Any] = {}
    for key, value in values.items():
        if key == "type" or value is None:
            continue
        rule = rules.get(key, expressible())
        theirs |= rule(here.at(key), value)
    return theirs


def member(
    here: Place, values: Mapping[str, Any], members: Mapping[str, Rules]
) -> dict[str, Any] | None:
    """Write an object with a `type` that has the same name in AllenNLP; None if there is none."""
    kind = str(values["type"])
    if kind not in members:
        here.at("type").missing(f"{kind!r} has no counterpart in AllenNLP")
        return None
    return {"type": kind, **block(here, values, members[kind])}


def part(name: str, write: Write, module: nn.Module, inner: str) -> Rule:
    """Return a rule for a part of a module.

    Args:
        name: of its key in AllenNLP.
        write: writes it.
        module: of ours.
        inner: the name of its part.
    """
    return into(name, lambda here, value: write(here, value, module.get_submodule(inner)))


def exported_feedforward(here: Place, values: Any, module: nn.Module) -> dict[str, Any]:
    """Write the layers of a feed-forward network."""
    keys = ("num_layers", "hidden_dims", "activations", "dropout")
    rules: Rules = {**dict.fromkeys(keys, kept), "input_dim": dropped("that of the module")}
    return {"input_dim": _first_layer(module).in_features, **block(here, values, rules)}


def _first_layer(module: nn.Module) -> nn.Linear:
    layer = module.get_submodule("linear_layers.0")
    assert isinstance(layer, nn.Linear)
    return layer


_SIZE: Rules = {
    "input_size": dropped("that of the module"),
    "hidden_size": kept,
    "num_layers": kept,
}
_RECURRENT: Rules = {**_SIZE, "bidirectional": kept, "dropout": kept}
_STACKED: Rules = {
    **_SIZE,
    "recurrent_dropout_probability": kept,
    "recurrent_dropout_place": TRAINING_ONLY,
    "use_highway": kept,
}


def exported_encoder(here: Place, values: Any, module: nn.Module) -> dict[str, Any] | None:
    """Write an encoder."""
    width = module.input_dim
    members: dict[str, Rules] = {
        "lstm": _RECURRENT,
        "gru": _RECURRENT,
        "alternating_lstm": {**_STACKED, "use_input_projection_bias": kept},
        "stacked_bidirectional_lstm": {**_STACKED, "layer_dropout_probability": kept},
        "pass_through": _SIZE,
        "compose": {"encoders": lambda here, each: {"encoders": _encoders(here, each, module)}},
        "feedforward": {
            "feedforward": lambda here, each: {
                "feedforward": exported_feedforward(here, each, module.get_submodule("feedforward"))
            }
        },
    }
    theirs = member(here, values, members)
    if theirs is None or theirs["type"] in ("compose", "feedforward"):
        return theirs
    key = "input_dim" if theirs["type"] == "pass_through" else "input_size"
    return {"type": theirs["type"], key: width, **theirs}


def _encoders(here: Place, values: Any, module: nn.Module) -> list[Any]:
    return [
        exported_encoder(
            Place(here.context, dotted(here.path, number)),
            each,
            module.get_submodule(f"encoders.{number}"),
        )
        for number, each in enumerate(values)
    ]


def exported_pooler(here: Place, values: Any, module: nn.Module) -> dict[str, Any] | None:
    """Write a pooler."""
    width = {"embedding_dim": dropped("that of the module")}
    members: dict[str, Rules] = {
        "bag_of_embeddings": {**width, "averaged": kept},
        "cnn": {
            **width,
            **dict.fromkeys(("num_filters", "ngram_filter_sizes", "output_dim"), kept),
            "conv_layer_activation": kept,
            "short_sequences": expressible("zero", reason="a filter longer than a word gives 0"),
        },
        "lstm": _RECURRENT,
        "gru": _RECURRENT,
    }
    theirs = member(here, values, members)
    if theirs is None:
        return None
    if theirs["type"] in ("lstm", "gru"):
        return {"input_size": module.input_dim, **theirs}
    of_cnn = theirs["type"] == "cnn"
    size = module.get_submodule("convolutions.0").in_channels if of_cnn else module.output_dim
    return {"embedding_dim": size, **theirs}


def exported_output_layer(values: Mapping[str, Any], num_labels: int) -> dict[str, Any]:
    """Write the last layers of a BCN: theirs end in the labels, ours add that layer."""
    is_maxout = values["type"] == "maxout"
    dims = "output_dims" if is_maxout else "hidden_dims"
    number = len(values[dims]) if is_maxout else values["num_layers"]

    def per_layer(value: Any, last: Any) -> list[Any]:
        return [*(value if isinstance(value, list) else [value] * number), last]

    theirs = {
        "num_layers": number + 1,
        dims: per_layer(values[dims], num_labels),
        "dropout": per_layer(values["dropout"], 0.0),
    }
    if is_maxout:
        return {**theirs, "pool_sizes": values["pool_sizes"]}
    return {**theirs, "activations": per_layer(values["activations"], "linear")}


_ATTENTION_SIZES = {
    "linear": ("tensor_1_dim", "tensor_2_dim"),
    "bilinear": ("matrix_1_dim", "matrix_2_dim"),
}


def exported_attention(module: nn.Module, inner: str) -> Rules:
    """Return the rule of the matrix attention of a model.

    Args:
        module: the model.
        inner: the name of the part whose outputs it reads.
    """

    def write(here: Place, values: Any, part_of_model: nn.Module) -> dict[str, Any] | None:
        sizes = dict.fromkeys(chain(*_ATTENTION_SIZES.values()), dropped("those of the module"))
        members: dict[str, Rules] = {
            "linear": {"combination": kept, **sizes},
            "bilinear": sizes,
            **{name: {} for name in ("dot_product", "scaled_dot_product", "cosine")},
        }
        theirs = member(here, values, members)
        if theirs is None:
            return None
        names = _ATTENTION_SIZES.get(theirs["type"], ())
        return {**theirs, **dict.fromkeys(names, part_of_model.output_dim)}

    return {"matrix_attention": part("matrix_attention", write, module, inner)}
