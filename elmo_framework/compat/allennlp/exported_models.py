"""Our models in AllenNLP's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from torch import nn

from elmo_framework.compat.allennlp.exported_embedders import (
    ELMO,
    Embedded,
    elmo,
    embedders,
    padded_namespace,
)
from elmo_framework.compat.allennlp.exported_parts import (
    TRAINING_ONLY,
    block,
    exported_attention,
    exported_encoder,
    exported_feedforward,
    exported_output_layer,
    exported_pooler,
    expressible,
    member,
    part,
)
from elmo_framework.compat.allennlp.rules import Place, Rules, dropped, kept, renamed
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.model.classifier import Classifier
from elmo_framework.model.head import Head
from elmo_framework.tasks.tagging.tagger import Tagger

ModelRules: TypeAlias = Callable[[Any], Rules]
"""Returns the rules of the keys of a model, from the model."""

_COMMON: Rules = {
    "embedder": dropped("written first"),
    **dict.fromkeys(
        ("initializer", "regularizer", "metrics", "class_weights", "label_smoothing"),
        TRAINING_ONLY,
    ),
}


def _part_keys(model: nn.Module, write: Any, *names: str) -> Rules:
    return {name: part(name, write, model, name) for name in names}


def _tagger(model: nn.Module) -> Rules:
    return {**_part_keys(model, exported_encoder, "encoder"), "label_encoding": dropped("added")}


def _crf_tagger(model: nn.Module) -> Rules:
    return {
        **_tagger(model),
        **_part_keys(model, exported_feedforward, "feedforward"),
        "include_start_end_transitions": kept,
        "constrain_transitions": renamed("constrain_crf_decoding"),
        "dropout": kept,
    }


def _simple_tagger(model: nn.Module) -> Rules:
    return {**_tagger(model), "decoder": expressible("softmax"), "dropout": TRAINING_ONLY}


def _srl(model: nn.Module) -> Rules:
    return {
        **_part_keys(model, exported_encoder, "encoder"),
        "binary_feature_dim": kept,
        "embedding_dropout": kept,
        "decoding": expressible("probabilities", reason="it adds up probabilities"),
        "predicate_words": expressible("tagged", reason="it marks all words of a predicate"),
        "loss_reduction": TRAINING_ONLY,
    }


def _esim(model: nn.Module) -> Rules:
    return {
        **_part_keys(model, exported_encoder, "encoder", "inference_encoder"),
        **_part_keys(model, exported_feedforward, "projection_feedforward", "output_feedforward"),
        **exported_attention(model, "encoder"),
        "dropout": kept,
        "attention_dropout": TRAINING_ONLY,
    }


def _bcn(model: nn.Module) -> Rules:
    return {
        **_part_keys(model, exported_encoder, "encoder", "integrator"),
        **_part_keys(model, exported_feedforward, "pre_encode_feedforward"),
        "output_layer": dropped("added"),
        "output_embedder": dropped("added"),
        "embedding_dropout": kept,
        "integrator_dropout": kept,
    }


def _bidaf(model: nn.Module) -> Rules:
    return {
        "encoder": part("phrase_layer", exported_encoder, model, "encoder"),
        **_part_keys(model, exported_encoder, "modeling_layer", "span_end_encoder"),
        **exported_attention(model, "encoder"),
        "num_highway_layers": kept,
        "dropout": kept,
        "max_span_length": expressible(reason="its answers may have any length"),
        "no_answer": expressible(False),
    }


def _coref(model: nn.Module) -> Rules:
    exact = {
        "encoder_reads": ("document", "it reads a document as one sequence"),
        "attention_reads": ("embedder", "the attention over a span reads the embedder"),
        "crossing_spans": (True, "its spans may cross"),
        "use_speakers": (False, "it has no speakers"),
        "use_genre": (False, "it has no genres"),
    }
    if any(isinstance(each, ElmoTokenEmbedder) for each in model.modules()):
        exact["embedder_reads"] = ("document", "ELMo reads a document as one sentence")
    return {
        "embedder_reads": dropped("words alone are the same in both"),
        "encoder": part("context_layer", exported_encoder, model, "encoder"),
        "mention_feedforward": part(
            "mention_feedforward", exported_feedforward, model, "mentions.feedforward"
        ),
        "antecedent_feedforward": part(
            "antecedent_feedforward", exported_feedforward, model, "antecedents.feedforward"
        ),
        **dict.fromkeys(("feature_size", "max_span_width", "spans_per_word"), kept),
        **dict.fromkeys(("max_antecedents", "lexical_dropout"), kept),
        **{key: expressible(value, reason=reason) for key, (value, reason) in exact.items()},
        **dict.fromkeys(("dropout", "max_training_sentences"), TRAINING_ONLY),
    }


def _basic_classifier(model: nn.Module) -> Rules:
    return {
        "encoder": part("seq2seq_encoder", exported_encoder, model, "encoder"),
        "pooler": part("seq2vec_encoder", exported_pooler, model, "pooler"),
        **_part_keys(model, exported_feedforward, "feedforward"),
        "dropout": kept,
    }


EXPORTED_MODELS: dict[str, ModelRules] = {
    "crf_tagger": _crf_tagger,
    "simple_tagger": _simple_tagger,
    "srl": _srl,
    "esim": _esim,
    "bcn": _bcn,
    "bidaf": _bidaf,
    "coref": _coref,
    "basic_classifier": _basic_classifier,
}
Following: TypeAlias = Callable[[Mapping[str, Any], Any], dict[str, Any]]
"""Returns keys of AllenNLP that follow from our block and the model."""

Namespaces: TypeAlias = Callable[[Any], Mapping[str, Vocabulary]]
"""Returns vocabularies of a model, with padding and an unknown item, by AllenNLP's namespace."""

_FOLLOWING: dict[str, Following] = {}
_NAMESPACES: dict[str, Namespaces] = {}


def register_exported_model(
    name: str, rules: ModelRules, following: Following, namespaces: Namespaces | None = None
) -> None:
    """Add a model of a plugin to those that are exported; AllenNLP's has the same name.

    Args:
        name: of both.
        rules: returns the rules of its keys.
        following: returns keys of AllenNLP that follow from the model.
        namespaces: returns vocabularies of the model that are not of words, characters or labels.
    """
    EXPORTED_MODELS[name], _FOLLOWING[name] = rules, following
    _NAMESPACES[name] = namespaces or (lambda model: {})


def exported_model(
    here: Place, values: Mapping[str, Any], model: Head[Any], embedded: Embedded
) -> dict[str, Any]:
    """Write a model.

    Args:
        here: its place.
        values: our block.
        model: of ours.
        embedded: takes what its token embedders need.
    """
    kind, values = str(values["type"]), dict(values)
    if kind not in EXPORTED_MODELS:
        here.at("type").missing(f"{kind!r} has no counterpart in AllenNLP")
        return {}
    added = _bcn_elmo(here, values, model, embedded) if kind == "bcn" else {}
    own = embedders(
        here.at("embedder"), values["embedder"], model.get_submodule("embedder"), embedded
    )
    for name, vocabulary in _NAMESPACES[kind](model).items() if kind in _NAMESPACES else ():
        embedded.namespaces[name] = padded_namespace(vocabulary)
    rules: Rules = {**_COMMON, **EXPORTED_MODELS[kind](model)}
    return {
        "type": kind,
        "text_field_embedder": own,
        **block(here, values, rules),
        **added,
        **_following(here, kind, values, model),
    }


def _following(
    here: Place, kind: str, values: Mapping[str, Any], model: Head[Any]
) -> dict[str, Any]:
    """Return keys of AllenNLP that follow from the model here."""
    if isinstance(model, Tagger):
        return _tags(here, values, model)
    if kind == "esim":
        layer = model.get_submodule("output_logit")
        sizes = {"input_dim": layer.in_features, "hidden_dims": layer.out_features}
        last = {**sizes, "num_layers": 1, "activations": "linear", "dropout": 0.0}
        return {"output_logit": last}
    if kind == "bcn":
        assert isinstance(model, Classifier)
        network = next(model.get_submodule("output_layer").children())
        first = network.get_submodule("linear_layers.0")
        layers = exported_output_layer(values["output_layer"], model.num_labels)
        return {"output_layer": {"input_dim": first.in_features, **layers}}
    return _FOLLOWING[kind](values, model) if kind in _FOLLOWING else {}


def _tags(here: Place, values: Mapping[str, Any], model: Tagger) -> dict[str, Any]:
    """Return the keys of the scheme of the tags; an encoder that does nothing if there is none."""
    theirs: dict[str, Any] = {}
    if values["encoder"] is None:
        theirs["encoder"] = {"type": "pass_through", "input_dim": model.embedder.output_dim}
    if model.scheme == "BIOES":
        here.at("label_encoding").problem(
            "tags in the scheme BIOES have no counterpart in AllenNLP"
        )
    elif model.scheme is not None:
        theirs |= {"label_encoding": model.scheme, "calculate_span_f1": True}
    elif values.get("constrain_transitions"):
        theirs["constrain_crf_decoding"] = False  # nothing is constrained without a scheme
    return theirs


def _bcn_elmo(
    here: Place, values: dict[str, Any], model: Head[Any], embedded: Embedded
) -> dict[str, Any]:
    """Return the block `elmo` of a BCN, for its input and output; remove it from `values`."""
    place = here.at("embedder").at("token_embedders")
    inner = values["embedder"]["token_embedders"]
    blocks: dict[str, Any] = {}
    for name, each in inner.items():
        own = model.get_submodule(f"embedder.token_embedders.{name}")
        if isinstance(own, ElmoTokenEmbedder):
            if name != "elmo" or len(inner) < 2:
                text = "a bcn of AllenNLP has ELMo at its input next to words, as 'elmo'"
                place.at(name).problem(text)
            blocks["use_input_elmo"] = _elmo_block(place.at(name), each, own)
    if values["output_embedder"] is not None:
        own, place = model.get_submodule("output_embedder"), here.at("output_embedder")
        if isinstance(own, ElmoTokenEmbedder):
            block_of_output = _elmo_block(place, values["output_embedder"], own)
            blocks["use_integrator_output_elmo"] = block_of_output
        else:
            place.problem("has no counterpart in AllenNLP; only an elmo_token_embedder has")
    if not blocks:
        return {}
    first, *others = blocks.values()
    if any(each != first for each in others):
        here.at("output_embedder").problem("differs from the ELMo of the input; AllenNLP has one")
    rest = {name: each for name, each in inner.items() if name != "elmo"}
    values["embedder"] = {**values["embedder"], "token_embedders": rest}
    embedded.indexers["elmo"] = {"type": "elmo_characters"}
    elmo = {**first, "num_output_representations": len(blocks)}
    return {"elmo": elmo, **dict.fromkeys(blocks, True)}


def _elmo_block(here: Place, values: Mapping[str, Any], own: ElmoTokenEmbedder) -> dict[str, Any]:
    theirs = member(here, values, {"elmo_token_embedder": ELMO}) or {}
    theirs.pop("type", None)
    return {**theirs, **elmo(here, values, own)}
