"""Names of the parameters of AllenNLP's models, with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from elmo_framework.config.types import MAX_LAYERS

Pair: TypeAlias = tuple[str, str]
"""The name of a parameter of AllenNLP, and of ours; empty where there is none here."""
Suffixes: TypeAlias = Callable[[Mapping[str, Any]], Iterator[Pair]]

_LINEAR = [("weight", "weight"), ("bias", "bias")]
_NUM_MIXED = 3
"""ELMo's layers: that of the characters and two LSTMs; those of other biLMs have the same names."""


def _count(values: Mapping[str, Any], key: str, default: int = 1) -> int:
    value = values.get(key, default)
    return min(value, MAX_LAYERS) if isinstance(value, int) else default


def _recurrent(kind: str) -> Suffixes:
    def suffixes(values: Mapping[str, Any]) -> Iterator[Pair]:
        directions = ["", "_reverse"] if values.get("bidirectional") else [""]
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for layer, end, name in product(range(_count(values, "num_layers")), directions, names):
            inner = f"{name}_l{layer}{end}"
            yield f"_module.{inner}", f"{kind}.{inner}"

    return suffixes


def _highway_lstms(*names: tuple[str, str], has_input_bias: bool = False) -> Suffixes:
    """Return the names of layers, from AllenNLP's name of a layer without its number and ours.

    Args:
        names: of the layers of each direction.
        has_input_bias: whether a layer has two biases, unless `use_input_projection_bias` is false.
    """
    parts = [
        ("input_linearity.weight", "input_weight", "highway_weight"),
        ("state_linearity.weight", "recurrent_weight", "transform_weight"),
        ("state_linearity.bias", "bias", "highway_bias"),
    ]

    def suffixes(values: Mapping[str, Any]) -> Iterator[Pair]:
        has_highway = values.get("use_highway", True)
        has_bias = has_input_bias and values.get("use_input_projection_bias", True)
        for layer, (of_theirs, of_ours) in product(range(_count(values, "num_layers")), names):
            if has_bias:  # added to that of the state here
                yield f"_module.{of_theirs}_{layer}.cell.input_linearity.bias", ""
            for theirs, gates, highway in parts:
                for ours in [gates, highway] if has_highway else [gates]:
                    # Before AllenNLP 1.0 a layer was not wrapped.
                    for place in (f"{of_theirs}_{layer}", f"{of_theirs}_{layer}.cell"):
                        yield f"_module.{place}.{theirs}", f"{of_ours}.{layer}.{ours}"

    return suffixes


def _linear_layers(values: Mapping[str, Any]) -> Iterator[Pair]:
    # The last layer of a BCN is added here.
    for layer, (name, _) in product(range(_count(values, "num_layers")), _LINEAR):
        yield f"_linear_layers.{layer}.{name}", f"linear_layers.{layer}.{name}"


def _feedforward_encoder(values: Mapping[str, Any]) -> Iterator[Pair]:
    inner = values.get("feedforward")
    for theirs, ours in _linear_layers(inner if isinstance(inner, dict) else {}):
        yield f"_feedforward.{theirs}", f"feedforward.{ours}"


def _composed(values: Mapping[str, Any]) -> Iterator[Pair]:
    encoders = values.get("encoders")
    for index, each in enumerate(encoders if isinstance(encoders, list) else []):
        for theirs, ours in _named(each, ENCODERS):
            yield f"encoder{index}.{theirs}", ours and f"encoders.{index}.{ours}"


def _convolutions(values: Mapping[str, Any]) -> Iterator[Pair]:
    sizes = values.get("ngram_filter_sizes", [2, 3, 4, 5])
    number = len(sizes) if isinstance(sizes, list) else 0
    for index, (name, _) in product(range(number), _LINEAR):
        yield f"conv_layer_{index}.{name}", f"convolutions.{index}.{name}"
    if values.get("output_dim") is not None:
        for name, _ in _LINEAR:
            yield f"projection_layer.{name}", f"projection.{name}"


def _no_parameters(values: Mapping[str, Any]) -> Iterator[Pair]:
    return iter(())


ENCODERS: dict[str, Suffixes] = {
    "lstm": _recurrent("lstm"),
    "gru": _recurrent("gru"),
    "alternating_lstm": _highway_lstms(("layer", "layers"), has_input_bias=True),
    "stacked_bidirectional_lstm": _highway_lstms(
        ("forward_layer", "forward_layers"), ("backward_layer", "backward_layers")
    ),
    "compose": _composed,
    "feedforward": _feedforward_encoder,
    "pass_through": _no_parameters,
    "bag_of_embeddings": _no_parameters,
    "cnn": _convolutions,
}


def _characters(values: Mapping[str, Any]) -> Iterator[Pair]:
    yield "_embedding._module.weight", "embedding.weight"
    for theirs, ours in _named(values.get("encoder"), ENCODERS):
        yield f"_encoder._module.{theirs}", f"encoder.{ours}"


def _mixed(values: Mapping[str, Any]) -> Iterator[Pair]:
    yield "scalar_mix_0.gamma", "mix.gamma"
    for layer in range(_NUM_MIXED):
        yield f"scalar_mix_0.scalar_parameters.{layer}", f"mix.scalar_parameters.{layer}"


def _elmo(values: Mapping[str, Any]) -> Iterator[Pair]:
    for theirs, ours in _mixed(values):
        yield f"_elmo.{theirs}", ours
    yield from _projected(values)


def _words(values: Mapping[str, Any]) -> Iterator[Pair]:
    yield "weight", "embedding.weight"
    yield from _projected(values)


def _projected(values: Mapping[str, Any]) -> Iterator[Pair]:
    if values.get("projection_dim") is not None:
        for name, _ in _LINEAR:
            yield f"_projection.{name}", f"projection.{name}"


EMBEDDERS: dict[str, Suffixes] = {
    "embedding": _words,
    "character_encoding": _characters,
    "elmo_token_embedder": _elmo,
    "pretrained_transformer_mismatched": _no_parameters,
}


def _named(values: Any, table: Mapping[str, Suffixes]) -> Iterator[Pair]:
    if isinstance(values, dict) and values.get("type") in table:
        yield from table[values["type"]](values)


Part: TypeAlias = tuple[str, str, str]
"""A part of a model: its place in AllenNLP's model and in ours, and its key in our config. A part
without a key is a linear layer; with the key `weight` it is one without a bias here, as no softmax
depends on it; with the key `embedding` it is a table."""

_TAGGER: list[Part] = [
    ("encoder", "encoder", "encoder"),
    ("tag_projection_layer._module", "projection", ""),
]
PARTS: dict[str, list[Part]] = {
    "crf_tagger": [*_TAGGER, ("_feedforward", "feedforward", "feedforward")],
    "simple_tagger": _TAGGER,
    "srl": [*_TAGGER, ("binary_feature_embedding", "predicate_embedding", "embedding")],
    "esim": [
        ("_encoder", "encoder", "encoder"),
        ("_projection_feedforward", "projection_feedforward", "projection_feedforward"),
        ("_inference_encoder", "inference_encoder", "inference_encoder"),
        ("_output_feedforward", "output_feedforward", "output_feedforward"),
        ("_output_logit._linear_layers.0", "output_logit", ""),
    ],
    "bcn": [
        ("_pre_encode_feedforward", "pre_encode_feedforward", "pre_encode_feedforward"),
        ("_encoder", "encoder", "encoder"),
        ("_integrator", "integrator", "integrator"),
        ("_self_attentive_pooling_projection", "self_attentive.projection", "weight"),
    ],
    "bidaf": [
        ("_phrase_layer", "encoder", "encoder"),
        ("_modeling_layer", "modeling_layer", "modeling_layer"),
        ("_span_end_encoder", "span_end_encoder", "span_end_encoder"),
        ("_span_start_predictor._module", "start", "weight"),
        ("_span_end_predictor._module", "end", "weight"),
    ],
    "coref": [
        ("_context_layer", "encoder", "encoder"),
        ("_mention_feedforward._module", "mentions.feedforward", "mention_feedforward"),
        ("_mention_scorer._module", "mentions.score", ""),
        # Before AllenNLP 1.0 both were in a pruner.
        ("_mention_pruner._scorer.0._module", "mentions.feedforward", "mention_feedforward"),
        ("_mention_pruner._scorer.1._module", "mentions.score", ""),
        ("_antecedent_feedforward._module", "antecedents.feedforward", "antecedent_feedforward"),
        ("_antecedent_scorer._module", "antecedents.score", ""),
        (
            "_endpoint_span_extractor._span_width_embedding",
            "mentions.width_embedding",
            "embedding",
        ),
        ("_attentive_span_extractor._global_attention._module", "mentions.attention", ""),
        ("_distance_embedding", "antecedents.distance_embedding", "embedding"),
    ],
    "basic_classifier": [
        ("_seq2seq_encoder", "encoder", "encoder"),
        ("_seq2vec_encoder", "pooler", "pooler"),
        ("_feedforward", "feedforward", "feedforward"),
        ("_classification_layer", "projection", ""),
    ],
}
ADDED_NAMES: dict[str, Suffixes] = {}
"""Names of parameters of a plugin's model that are not in `PARTS`, from our block."""
_WITHOUT_UNDERSCORE = {"crf_tagger", "simple_tagger", "srl", "constituency_parser"}


def names(model: Mapping[str, Any], *, has_input_elmo: bool = False) -> list[Pair]:
    """Return the names of the parameters of a model.

    Args:
        model: our block, translated.
        has_input_elmo: whether the embedder `elmo` is that of the block `elmo` of a BCN.
    """
    kind = str(model.get("type"))
    return [
        *_of_embedders(model, has_input_elmo),
        *_of_parts(model, PARTS.get(kind, [])),
        *_special(model, kind, has_input_elmo),
    ]


def _of_embedders(model: Mapping[str, Any], has_input_elmo: bool) -> Iterator[Pair]:
    kind, embedder = model.get("type"), model.get("embedder")
    embedders = embedder.get("token_embedders") if isinstance(embedder, dict) else None
    prefix = "text_field_embedder" if kind in _WITHOUT_UNDERSCORE else "_text_field_embedder"
    for name, values in embedders.items() if isinstance(embedders, dict) else ():
        inside = f"embedder.token_embedders.{name}"
        is_of_bcn = has_input_elmo and name == "elmo"
        theirs_at = "_elmo" if is_of_bcn else f"{prefix}.token_embedder_{name}"
        pairs = _mixed(values) if is_of_bcn else _named(values, EMBEDDERS)
        for theirs, ours in pairs:
            yield f"{theirs_at}.{theirs}", f"{inside}.{ours}"


def _of_parts(model: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[Pair]:
    for theirs_at, ours_at, key in parts:
        values = model.get(key)
        if key in ("", "weight", "embedding"):
            yield f"{theirs_at}.weight", f"{ours_at}.weight"
        if key in ("", "weight"):
            yield f"{theirs_at}.bias", "" if key else f"{ours_at}.bias"
        elif isinstance(values, dict):
            pairs = _named(values, ENCODERS) if "type" in values else _linear_layers(values)
            for theirs, ours in pairs:
                yield f"{theirs_at}.{theirs}", ours and f"{ours_at}.{ours}"


def _special(model: Mapping[str, Any], kind: str, has_input_elmo: bool) -> Iterator[Pair]:
    """Yield the parameters that are stored in another way here."""
    if kind == "crf_tagger":
        yield "crf.transitions", "crf.transitions"
        if model.get("include_start_end_transitions"):
            yield "crf.start_transitions", "crf.start_transitions"
            yield "crf.end_transitions", "crf.end_transitions"
    yield from ADDED_NAMES.get(kind, _no_parameters)(model)
    if kind == "bidaf":
        yield from _of_bidaf(model)
    if kind in ("esim", "decomposable_attention"):
        yield from _attention_names(model, "matrix_attention")
    if kind == "bcn":
        yield from _of_bcn(model, int(has_input_elmo))


def _of_bidaf(model: Mapping[str, Any]) -> Iterator[Pair]:
    yield from _attention_names(model, "attention.score")
    layers = range(_count(model, "num_highway_layers", 2))
    for layer, (name, _), gate in product(layers, _LINEAR, ("carry", "transform")):
        theirs = f"_highway_layer._module._layers.{layer}.{name}"
        yield theirs, f"highway.layers.{layer}.{gate}.{name}"


def _attention_names(model: Mapping[str, Any], ours: str) -> Iterator[Pair]:
    """Yield the names of a matrix attention, whose bias no softmax sees."""
    values = model.get("matrix_attention")
    names = {"linear": "_weight_vector", "bilinear": "_weight_matrix"}
    name = names.get(values.get("type", "")) if isinstance(values, dict) else None
    # Before AllenNLP 1.0 the attention had a similarity function.
    for place in ("_matrix_attention", "_matrix_attention._similarity_function"):
        if name is not None:
            yield f"{place}.{name}", f"{ours}.weight"
            yield f"{place}._bias", ""


def _of_bcn(model: Mapping[str, Any], index: int) -> Iterator[Pair]:
    yield from _output_layers(model.get("output_layer"))
    if isinstance(model.get("output_embedder"), dict):
        for theirs, ours in _mixed({}):
            yield f"_elmo.{theirs.replace('_0', f'_{index}', 1)}", f"output_embedder.{ours}"


def _output_layers(layer: Any) -> Iterator[Pair]:
    if not isinstance(layer, dict):
        return
    is_maxout = layer.get("type") == "maxout"
    widths = layer.get("output_dims" if is_maxout else "hidden_dims")
    number = len(widths) if isinstance(widths, list) else 0
    inner = "maxout" if is_maxout else "feedforward"
    for index, (name, _) in product(range(number + 1), _LINEAR):
        last = index == number and not is_maxout
        ours = f"projection.{name}" if last else f"{inner}.linear_layers.{index}.{name}"
        yield f"_output_layer._linear_layers.{index}.{name}", f"output_layer.{ours}"
