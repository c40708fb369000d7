"""Encoders, poolers, feed-forward networks and attentions of AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from elmo_framework.compat.allennlp.rules import (
    Member,
    Place,
    Rules,
    block,
    component,
    dropped,
    into,
    kept,
    only,
    renamed,
    unsupported,
)
from elmo_framework.config.types import MAX_LAYERS
from elmo_framework.errors import dotted, shown
from elmo_framework.nn.feedforward import Activation

ACTIVATIONS = get_args(Activation)

_SIZE = {"input_size": kept, "hidden_size": kept}
_STATEFUL = {"stateful": only(False, reason="each sentence starts from zero here")}
_RECURRENT: Rules = {
    **_SIZE,
    "num_layers": kept,
    "bidirectional": kept,
    "dropout": kept,
    "bias": only(True),
    **_STATEFUL,
}


def _recurrent_dropout(here: Place, value: Any) -> dict[str, Any]:
    """Keep a rate; AllenNLP masks what the next word reads, and not what the next layer reads."""
    return {here.key: value, **({"recurrent_dropout_place": "recurrence"} if value else {})}


_STACKED: Rules = {
    **_SIZE,
    "num_layers": kept,
    "recurrent_dropout_probability": _recurrent_dropout,
    "use_highway": kept,
    **_STATEFUL,
}


def feedforward(here: Place, value: Any) -> dict[str, Any]:
    """Translate a FeedForward."""
    keys = ("input_dim", "num_layers", "hidden_dims", "dropout")
    rules: Rules = {**dict.fromkeys(keys, kept), "activations": _activations}
    return block(here, value, rules, "FeedForward")


def _activations(here: Place, value: Any) -> Mapping[str, Any]:
    for each in value if isinstance(value, list) else [value]:
        if each not in ACTIVATIONS:
            choices = ", ".join(sorted(ACTIVATIONS))  # the nearest name is another function
            message = f"AllenNLP's Activation {shown(each)} has no counterpart here"
            here.problem(f"{message}; choose from {choices}")
    return {here.key: value}


def _feedforward_rule(here: Place, value: Any) -> Mapping[str, Any]:
    return {here.key: feedforward(here, value)}


def _encoders(here: Place, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list):
        here.problem(f"expected a list of encoders, not {shown(value)}")
        return {}
    places = (Place(here.context, dotted(here.path, number)) for number in range(len(value)))
    return {here.key: [encoder(*each) for each in zip(places, value, strict=True)]}


SEQ2SEQ: dict[str, Member] = {
    "lstm": Member("lstm", _RECURRENT),
    "gru": Member("gru", _RECURRENT),
    "alternating_lstm": Member("alternating_lstm", {**_STACKED, "use_input_projection_bias": kept}),
    "stacked_bidirectional_lstm": Member(
        "stacked_bidirectional_lstm", {**_STACKED, "layer_dropout_probability": kept}
    ),
    "compose": Member("compose", {"encoders": _encoders}),
    "feedforward": Member("feedforward", {"feedforward": _feedforward_rule}),
    "pass_through": Member(
        "pass_through", {"input_dim": lambda here, value: {"input_size": value}}
    ),
}
_BAG = Member("bag_of_embeddings", {"embedding_dim": kept, "averaged": kept})
_UNCARRIED = {key: rule for key, rule in _RECURRENT.items() if key != "stateful"}
SEQ2VEC: dict[str, Member] = {
    "bag_of_embeddings": _BAG,
    "boe": _BAG,
    "cnn": Member(
        "cnn",
        {
            "embedding_dim": kept,
            "num_filters": kept,
            "ngram_filter_sizes": kept,
            "conv_layer_activation": kept,
            "output_dim": kept,
        },
        {"short_sequences": "zero"},
    ),
    "lstm": Member("lstm", _UNCARRIED),
    "gru": Member("gru", _UNCARRIED),
}


def encoder(here: Place, value: Any) -> Any:
    """Translate a Seq2SeqEncoder."""
    return _without_idle_dropout(here, component(here, value, SEQ2SEQ, "Seq2SeqEncoder"))


def pooler(here: Place, value: Any) -> Any:
    """Translate a Seq2VecEncoder."""
    return _without_idle_dropout(here, component(here, value, SEQ2VEC, "Seq2VecEncoder"))


def _without_idle_dropout(here: Place, ours: Any) -> Any:
    """Drop the dropout of a single layer of PyTorch, which warns that it has no effect."""
    if isinstance(ours, dict) and "dropout" in ours and ours.get("num_layers", 1) == 1:
        here.at("dropout").note("dropped", "it is between layers")
        del ours["dropout"]
    return ours


MATRIX_ATTENTIONS: dict[str, Member] = {
    "dot_product": Member("dot_product"),
    "scaled_dot_product": Member("scaled_dot_product"),
    "cosine": Member("cosine"),
    "bilinear": Member(
        "bilinear",
        {
            "matrix_1_dim": kept,
            "matrix_2_dim": kept,
            "activation": only("linear"),
            "use_input_biases": only(False),
            "label_dim": only(1),
        },
    ),
    "linear": Member(
        "linear",
        {
            "tensor_1_dim": kept,
            "tensor_2_dim": kept,
            "combination": kept,
            "activation": only("linear"),
        },
        {"combination": "x,y"},
    ),
}


_SIMILARITIES: dict[str, Member] = {
    **MATRIX_ATTENTIONS,
    "dot_product": Member(
        "dot_product",
        {"scale_output": only(False, reason="AllenNLP multiplies by the root of the dimension")},
    ),
    "bilinear": Member(
        "bilinear",
        {
            **MATRIX_ATTENTIONS["bilinear"].rules,
            "tensor_1_dim": renamed("matrix_1_dim"),
            "tensor_2_dim": renamed("matrix_2_dim"),
        },
    ),
}


def attention(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate a MatrixAttention; before AllenNLP 1.0 it is a `similarity_function`."""
    if here.key == "similarity_function":
        ours = component(here, value, _SIMILARITIES, "SimilarityFunction")
    else:
        ours = component(here, value, MATRIX_ATTENTIONS, "MatrixAttention")
    return into("matrix_attention", lambda _, each: each)(here, ours)


def output_logit(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop ESIM's last layer, which the model adds here; refuse any other network."""
    layer = {
        "input_dim": dropped("it follows from output_feedforward"),
        "num_layers": only(1),
        "hidden_dims": _labels,
        "activations": only("linear", ["linear"]),
        "dropout": only(0, 0.0, [0.0], [0]),
    }
    block(here, value, layer, "FeedForward")
    if isinstance(value, dict):
        for key in ("num_layers", "hidden_dims", "activations"):
            if key not in value:
                here.problem(f"{key} is missing")
    here.note("dropped", "a linear layer to the labels follows output_feedforward")
    return {}


def _labels(here: Place, value: Any) -> Mapping[str, Any]:
    if not _is_width(value) and not (isinstance(value, list) and len(value) == 1):
        here.problem(f"expected the number of labels, not {shown(value)}")
    here.note("dropped", "the number of labels follows from the data")
    return {}


def _is_width(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def output_layer(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the last layers of a BCN: theirs end in the labels, ours add that layer."""
    is_maxout = isinstance(value, dict) and bool({"output_dims", "pool_sizes"} & value.keys())
    owner, *needed = ("Maxout", *_MAXOUT) if is_maxout else ("FeedForward", *_LINEAR_LAYERS)
    keys = ("input_dim", "num_layers", *needed, "dropout")
    rules = {**dict.fromkeys(keys, kept), **({} if is_maxout else {"activations": _activations})}
    given = block(here, value, rules, owner)
    layers = _listed(here, {"dropout": 0.0, **given}, needed)
    if layers is None:
        return {}
    if "input_dim" in given:
        here.at("input_dim").note("dropped", "it follows from the pooled vector")
    here.at(needed[0]).note("differs", "the last layer is added: one output per label of the data")
    if layers["dropout"][-1] != 0:
        rate = shown(layers["dropout"][-1])
        here.at("dropout").problem(f"dropout of the labels, {rate}, has no counterpart here")
    inner = {key: each[:-1] for key, each in layers.items() if key in given and key != "pool_sizes"}
    ours = _maxout(here, layers) if is_maxout else _linear(here, layers)
    return {"output_layer": {**ours, **inner}}


_MAXOUT = ("output_dims", "pool_sizes")
_LINEAR_LAYERS = ("hidden_dims", "activations")


def _listed(
    here: Place, layers: Mapping[str, Any], needed: Sequence[str]
) -> dict[str, list[Any]] | None:
    """Return the settings of each layer by key; None where they are incomplete."""
    missing = [key for key in ("num_layers", *needed) if key not in layers]
    number: Any = layers.get("num_layers")
    if missing:
        here.problem(f"{missing[0]} is missing")
    elif not _is_width(number) or number > MAX_LAYERS:
        here.at("num_layers").problem(f"expected a number of layers, not {shown(number)}")
    else:
        keys = (*needed, "dropout")
        return {key: _per_layer(here.at(key), layers[key], number) for key in keys}
    return None


def _maxout(here: Place, layers: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    here.note("becomes", "output_layer of type 'maxout'")
    if len({*map(str, layers["pool_sizes"])}) > 1:
        here.at("pool_sizes").problem("different sizes have no counterpart here; use one")
    return {"type": "maxout", "pool_sizes": layers["pool_sizes"][0]}


def _linear(here: Place, layers: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    activations = layers["activations"]
    if activations[-1] != "linear":
        here.at("activations").problem("the last has no counterpart here, except 'linear'")
    if len(activations) == 1:
        here.problem("one layer alone has no counterpart here; use two or more")
    return {"type": "feedforward", "num_layers": len(activations) - 1}


def _per_layer(here: Place, value: Any, number: int) -> list[Any]:
    values = value if isinstance(value, list) else [value] * number
    if len(values) != number:
        here.problem(f"has {len(values)} items for {number} layers")
        return [0] * number
    return values


WITHOUT_SPANS: Rules = {"label_smoothing": only(0, 0.0), "top_k": only(1)}
WITH_WEIGHTS: Rules = {
    "ignore_loss_on_o_tags": only(False),
    "label_weights": unsupported(),
    "weight_strategy": unsupported(),
}
