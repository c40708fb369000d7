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
from elmo_framework.data import Vocabulary

from .constituency_task import PARTS_OF_SPEECH

_LAST_LAYER = "output_logit"
_TAG_EMBEDDING = "pos_tag_embedding"


def register_translations() -> None:
    """Add the types of this plugin to those that are translated."""
    register_model("decomposable_attention", _DECOMPOSABLE_ATTENTION, _PARTS, _aggregate_names)
    register_model("constituency_parser", _CONSTITUENCY_PARSER, _PARSER_PARTS, _parser_names)
    register_reader("ptb_trees", _PTB_TREES, namespaces={PARTS_OF_SPEECH: PARTS_OF_SPEECH})
    register_exported_model("decomposable_attention", _exported_attention, _last_layers)
    register_exported_model("constituency_parser", _exported_parser, _extractor, _tag_namespace)
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


def _parser_names(model: Mapping[str, Any]) -> Iterator[Pair]:
    for name in ("start", "end"):
        yield f"span_extractor._{name}_sentinel", f"{name}_sentinel"
    if model.get(_TAG_EMBEDDING) is not None:
        yield f"{_TAG_EMBEDDING}.weight", f"{_TAG_EMBEDDING}.weight"


_ONE_TAG_NAMESPACE = only(PARTS_OF_SPEECH, reason="parts of speech have one vocabulary")
_TAG_EMBEDDINGS = {
    "embedding": Member(
        "embedding",
        {
            "embedding_dim": kept,
            "vocab_namespace": _ONE_TAG_NAMESPACE,
            "num_embeddings": dropped("it follows from the vocabulary"),
            "padding_index": only(0),
            "trainable": only(True),
            "sparse": dropped("it changes the form of gradients only"),
            "norm_type": only(2, 2.0),
            "scale_grad_by_freq": only(False),
            **dict.fromkeys(("max_norm", "pretrained_file", "projection_dim"), unsupported()),
        },
    )
}


def _tag_embedding(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the vectors of parts of speech; by default AllenNLP has as many as words."""
    ours = component(here, value, _TAG_EMBEDDINGS, "TokenEmbedder", default="embedding")
    if ours is None:
        return {}
    if isinstance(value, dict) and value.get("vocab_namespace") is None:
        here.at("vocab_namespace").problem("its default has no counterpart here; set 'pos'")
    return {here.key: {key: each for key, each in ours.items() if key != "type"}}


def _reads_tags(here: Place) -> bool:
    return here.context.value("model", _TAG_EMBEDDING) is not None


def _use_of_tags(here: Place, value: Any) -> Mapping[str, Any]:
    if value is False and _reads_tags(here):
        here.problem("the model has a pos_tag_embedding, which needs true")
        return {}
    return only(True, False, reason="parts of speech are always read")(here, value)


def _tag_namespace_of_reader(here: Place, value: Any) -> Mapping[str, Any]:
    rule = _ONE_TAG_NAMESPACE if _reads_tags(here) else dropped("the model reads words alone")
    return rule(here, value)


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
        _TAG_EMBEDDING: _tag_embedding,
        "evalb_directory_path": dropped("the scores are those of EVALB, without its program"),
    },
)
_PTB_TREES = Member(
    "ptb_trees",
    {
        **READER_RULES,
        "use_pos_tags": _use_of_tags,
        "convert_parentheses": kept,
        "label_namespace_prefix": only(""),
        "pos_label_namespace": _tag_namespace_of_reader,
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
        _TAG_EMBEDDING: _exported_tag_embedding,
    }


def _exported_tag_embedding(here: Place, value: Any) -> Mapping[str, Any]:
    return {here.key: {**value, "vocab_namespace": PARTS_OF_SPEECH}}


def _tag_namespace(model: Any) -> Mapping[str, Vocabulary]:
    has_tags = model.pos_tag_embedding is not None
    return {PARTS_OF_SPEECH: model.tag_vocabulary} if has_tags else {}


def _extractor(values: Mapping[str, Any], model: Any) -> dict[str, Any]:
    dim = model.encoder.output_dim
    return {"span_extractor": {"type": "bidirectional_endpoint", "input_dim": dim}}
