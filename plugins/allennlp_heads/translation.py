"""Translate AllenNLP's configs of these heads, and write theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from elmo_framework.compat.allennlp import (
    MODEL_RULES,
    READER_RULES,
    Member,
    Pair,
    Place,
    Rules,
    attention,
    component,
    dropped,
    encoder,
    exported_attention,
    exported_encoder,
    exported_feedforward,
    exported_output_layer,
    feedforward,
    into,
    kept,
    only,
    output_layer,
    part,
    register_exported_model,
    register_exported_reader,
    register_model,
    register_reader,
    unsupported,
)

_LAST_LAYER = "output_logit"


def register_translations() -> None:
    """Add the types of this plugin to those that are translated."""
    register_model("decomposable_attention", _DECOMPOSABLE_ATTENTION, _PARTS, _aggregate_names)
    register_model("constituency_parser", _CONSTITUENCY_PARSER, _PARSER_PARTS, _sentinel_names)
    register_reader("ptb_trees", _PTB_TREES)
    register_exported_model("decomposable_attention", _exported_attention, _last_layers)
    register_exported_model("constituency_parser", _exported_parser, _extractor)
    register_exported_reader("ptb_trees", {"convert_parentheses": kept})


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
        "matrix_attention": attention,
        "similarity_function": attention,
        "premise_encoder": into("premise_encoder", encoder),
        "hypothesis_encoder": into("hypothesis_encoder", encoder),
    },
)
_WIDTHS = unsupported("the vectors of spans have no widths here")
_SPAN_EXTRACTORS = {
    "bidirectional_endpoint": Member(
        "bidirectional_endpoint",
        {
            "input_dim": dropped("it follows from the encoder"),
            "forward_combination": only("y-x"),
            "backward_combination": only("x-y"),
            "use_sentinels": only(True),
            "num_width_embeddings": _WIDTHS,
            "span_width_embedding_dim": _WIDTHS,
            "bucket_widths": only(False),
        },
    )
}


def _span_extractor(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop the span extractor, of which the model has one."""
    component(here, value, _SPAN_EXTRACTORS, "SpanExtractor")
    here.note("dropped", "the model has this span extractor: bidirectional_endpoint")
    return {}


def _sentinel_names(model: Mapping[str, Any]) -> Iterator[Pair]:
    for name in ("start", "end"):
        yield f"span_extractor._{name}_sentinel", f"{name}_sentinel"


_PARSER_PARTS = [
    ("encoder", "encoder", "encoder"),
    ("feedforward_layer._module", "feedforward", "feedforward"),
    ("tag_projection_layer._module", "projection", ""),
]
_CONSTITUENCY_PARSER = Member(
    "constituency_parser",
    {
        **MODEL_RULES,
        "encoder": into("encoder", encoder),
        "feedforward": into("feedforward", feedforward),
        "span_extractor": _span_extractor,
        "pos_tag_embedding": unsupported("leave it out: the model reads words alone"),
        "evalb_directory_path": dropped("the scores are those of EVALB, without its program"),
    },
)
_PTB_TREES = Member(
    "ptb_trees",
    {
        **READER_RULES,
        "use_pos_tags": dropped("parts of speech are read for the scores"),
        "convert_parentheses": kept,
        "label_namespace_prefix": only(""),
        "pos_label_namespace": dropped("the model reads words alone"),
    },
)


def _exported_attention(model: Any) -> Rules:
    layers = ("attend_feedforward", "compare_feedforward")
    encoders = ("premise_encoder", "hypothesis_encoder")
    return {
        **{name: part(name, exported_feedforward, model, name) for name in layers},
        **{name: part(name, exported_encoder, model, name) for name in encoders},
        **exported_attention(model, "attend_feedforward"),
        "aggregate_feedforward": dropped("added"),
    }


def _last_layers(values: Mapping[str, Any], model: Any) -> dict[str, Any]:
    options = {**values["aggregate_feedforward"], "type": "feedforward"}
    first = model.aggregate_feedforward.linear_layers[0]
    layers = exported_output_layer(options, model.num_labels)
    return {"aggregate_feedforward": {"input_dim": first.in_features, **layers}}


def _exported_parser(model: Any) -> Rules:
    return {
        "encoder": part("encoder", exported_encoder, model, "encoder"),
        "feedforward": part("feedforward", exported_feedforward, model, "feedforward"),
    }


def _extractor(values: Mapping[str, Any], model: Any) -> dict[str, Any]:
    dim = model.encoder.output_dim
    return {"span_extractor": {"type": "bidirectional_endpoint", "input_dim": dim}}
