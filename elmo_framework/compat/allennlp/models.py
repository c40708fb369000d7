"""Models of AllenNLP, their initializers and regularizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_framework.compat.allennlp.embedders import ELMO, elmo, text_field_embedder
from elmo_framework.compat.allennlp.language_models import (
    LANGUAGE_MODELS,
    require_both_directions,
)
from elmo_framework.compat.allennlp.layers import (
    WITH_WEIGHTS,
    WITHOUT_SPANS,
    attention,
    encoder,
    feedforward,
    output_layer,
    output_logit,
    pooler,
)
from elmo_framework.compat.allennlp.namespaces import one_namespace
from elmo_framework.compat.allennlp.parameter_names import ADDED_NAMES, PARTS, Part, Suffixes
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
)
from elmo_framework.errors import shown

_ALL_METRICS = dropped("all metrics of a task are computed")
MODEL_RULES: Rules = {
    "text_field_embedder": into("embedder", text_field_embedder),
    "initializer": lambda here, value: {},
    "regularizer": lambda here, value: {},
}
"""The rules of the keys that all models of AllenNLP have."""

_TAGGER: Rules = {
    **MODEL_RULES,
    "encoder": into("encoder", encoder),
    "label_namespace": one_namespace("labels"),
    "calculate_span_f1": _ALL_METRICS,
    "verbose_metrics": _ALL_METRICS,
}


def _mask(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop whether LSTMs skip padding, which they do here."""
    if value is False:
        here.note("differs", "LSTMs do not read padding; AllenNLP's do, with false")
        return {}
    return only(True, reason="padding has no effect here")(here, value)


def _constraints(here: Place, value: Any) -> Mapping[str, Any]:
    return into("constrain_transitions", lambda _, each: each)(here, value)


_BCN = Member(
    "bcn",
    {
        **MODEL_RULES,
        "embedding_dropout": kept,
        "pre_encode_feedforward": into("pre_encode_feedforward", feedforward),
        "encoder": into("encoder", encoder),
        "integrator": into("integrator", encoder),
        "integrator_dropout": kept,
        "output_layer": output_layer,
        "elmo": lambda here, value: {},
        "use_input_elmo": lambda here, value: {},
        "use_integrator_output_elmo": lambda here, value: {},
    },
)
_SRL = Member(
    "srl",
    {
        **MODEL_RULES,
        "encoder": into("encoder", encoder),
        "binary_feature_dim": kept,
        "embedding_dropout": kept,
        "label_smoothing": WITHOUT_SPANS["label_smoothing"],
        "ignore_span_metric": _ALL_METRICS,
        "srl_eval_path": dropped("the scores are those of srl-eval.pl, without Perl"),
    },
    implied={
        "decoding": "probabilities",
        "predicate_words": "tagged",
        "loss_reduction": "mean",
    },
)
MODELS: dict[str, Member] = {
    **LANGUAGE_MODELS,
    "crf_tagger": Member(
        "crf_tagger",
        {
            **_TAGGER,
            **WITH_WEIGHTS,
            "top_k": WITHOUT_SPANS["top_k"],
            "label_encoding": kept,
            "include_start_end_transitions": kept,
            "constrain_crf_decoding": _constraints,
            "dropout": kept,
            "feedforward": into("feedforward", feedforward),
        },
        {"include_start_end_transitions": True},
    ),
    "simple_tagger": Member(
        "simple_tagger",
        {**_TAGGER, "label_encoding": dropped("it is inferred from the tags")},
    ),
    "srl": _SRL,
    "semantic_role_labeler": _SRL,
    "esim": Member(
        "esim",
        {
            **MODEL_RULES,
            "encoder": into("encoder", encoder),
            "matrix_attention": attention,
            "similarity_function": attention,
            "projection_feedforward": into("projection_feedforward", feedforward),
            "inference_encoder": into("inference_encoder", encoder),
            "output_feedforward": into("output_feedforward", feedforward),
            "output_logit": output_logit,
            "dropout": kept,
        },
    ),
    "bcn": _BCN,
    "biattentive_classification_network": _BCN,
    "bidaf": Member(
        "bidaf",
        {
            **MODEL_RULES,
            "num_highway_layers": kept,
            "phrase_layer": into("encoder", encoder),
            "matrix_attention": attention,
            "similarity_function": attention,
            "modeling_layer": into("modeling_layer", encoder),
            "span_end_encoder": into("span_end_encoder", encoder),
            "dropout": kept,
            "mask_lstms": _mask,
        },
    ),
    "coref": Member(
        "coref",
        {
            **MODEL_RULES,
            "context_layer": into("encoder", encoder),
            "mention_feedforward": into("mention_feedforward", feedforward),
            "antecedent_feedforward": into("antecedent_feedforward", feedforward),
            "feature_size": kept,
            "max_span_width": kept,
            "spans_per_word": kept,
            "max_antecedents": kept,
            "lexical_dropout": kept,
            "coarse_to_fine": only(False),
            "inference_order": only(1),
        },
        {"lexical_dropout": 0.2},
        implied={
            "encoder_reads": "document",
            "embedder_reads": "document",
            "use_speakers": False,
            "use_genre": False,
            "max_training_sentences": None,
            "dropout": 0.0,
            "attention_reads": "embedder",
            "crossing_spans": True,
        },
    ),
    "basic_classifier": Member(
        "basic_classifier",
        {
            **MODEL_RULES,
            "seq2seq_encoder": into("encoder", encoder),
            "seq2vec_encoder": into("pooler", pooler),
            "feedforward": into("feedforward", feedforward),
            "dropout": kept,
            "num_labels": dropped("the number of labels follows from the data"),
            "label_namespace": one_namespace("labels"),
            "namespace": dropped("words have one vocabulary"),
        },
    ),
}


_PLUGINS = dict.fromkeys(
    ("decomposable_attention", "constituency_parser"), "plugins/allennlp_heads"
)
"""The plugins that add models, by AllenNLP's name."""


def register_model(
    name: str, member: Member, parts: Sequence[Part], more_names: Suffixes | None = None
) -> None:
    """Add a model of a plugin to those that are translated.

    Args:
        name: AllenNLP's.
        member: its counterpart.
        parts: where its parameters are.
        more_names: yields the names of its parameters that are not in `parts`, from our block.
    """
    MODELS[name] = member
    PARTS[member.name] = [*parts]
    if more_names is not None:
        ADDED_NAMES[member.name] = more_names


def model(here: Place, value: Any) -> Any:
    """Translate a Model without its initializer and regularizer."""
    name = value.get("type") if isinstance(value, dict) else value
    plugin = _PLUGINS.get(name) if isinstance(name, str) else None
    if plugin is not None and name not in MODELS:
        message = f"AllenNLP's Model {shown(name)} needs a plugin; pip install ./{plugin}"
        (here.at("type") if isinstance(value, dict) else here).missing(message)
        return None
    ours = component(here, value, MODELS, "Model")
    if ours is None or not isinstance(value, dict):
        return ours
    if ours["type"] == "crf_tagger" and "constrain_transitions" not in ours:
        # AllenNLP constrains transitions where the scheme of labels is stated.
        is_constrained = value.get("label_encoding") is not None
        text = f"{str(is_constrained).lower()}, as label_encoding is "
        text += "given" if is_constrained else "missing"
        here.at("constrain_transitions").note("added", text)
        ours["constrain_transitions"] = is_constrained
    require_both_directions(here, value)
    if ours["type"] == "bcn":
        _add_elmo(here, value, ours)
    if ours["type"] == "coref":
        place = here.at("text_field_embedder").at("token_embedders")
        _leave_out_cache(place, ours.get("embedder"))
    return ours


_ELMO_FLAGS = ("use_input_elmo", "use_integrator_output_elmo")


def _add_elmo(here: Place, value: dict[str, Any], ours: dict[str, Any]) -> None:
    """Add the ELMo of a BCN at its input and after its integrator."""
    flags = [value.get(key) or False for key in _ELMO_FLAGS]
    for key, flag in zip(_ELMO_FLAGS, flags, strict=True):
        if not isinstance(flag, bool):
            here.at(key).problem(f"expected true or false, not {shown(flag)}")
        elif value.get(key) is False:
            here.at(key).note("dropped", "false is the default")
    if (value.get("elmo") is not None) is not any(flags):
        here.problem(f"the block elmo needs {' or '.join(_ELMO_FLAGS)}, and these need it")
    elif any(flags):
        translated = _elmo_block(here.at("elmo"), value["elmo"], num_places=sum(map(bool, flags)))
        if flags[0]:
            _add_to_input(here.at(_ELMO_FLAGS[0]), translated, ours.get("embedder"))
        if flags[1]:
            here.at(_ELMO_FLAGS[1]).note("becomes", "output_embedder")
            ours["output_embedder"] = translated


def _elmo_block(here: Place, value: Any, *, num_places: int) -> dict[str, Any]:
    rules: Rules = {
        **ELMO,
        "num_output_representations": only(
            num_places, reason="one for each place where ELMo is used"
        ),
        "keep_sentence_boundaries": only(False),
    }
    ours = {"type": "elmo_token_embedder", **block(here, value, rules, "Elmo")}
    return elmo(here, value, ours) if isinstance(value, dict) else ours


def _add_to_input(here: Place, translated: Any, embedder: Any) -> None:
    here.note("becomes", "embedder.token_embedders.elmo")
    embedders = embedder.get("token_embedders") if isinstance(embedder, dict) else None
    if isinstance(embedders, dict):
        if "elmo" in embedders:
            here.problem("the text_field_embedder has an embedder elmo too")
        embedders["elmo"] = translated


def _leave_out_cache(here: Place, embedder: Any) -> None:
    """Add `cache: 'none'` to ELMo, as the texts of a cache are sentences, not documents."""
    embedders = embedder.get("token_embedders") if isinstance(embedder, dict) else None
    for name, each in embedders.items() if isinstance(embedders, dict) else ():
        if isinstance(each, dict) and each.get("type") == "elmo_token_embedder":
            text = "none, as ELMo reads whole documents, and a cache has sentences"
            here.at(name).at("cache").note("added", text)
            each["cache"] = "none"


INITIALIZER_KEYS: dict[str, Member] = {
    **{name: Member(name) for name in ("zero", "eye", "dirac", "lstm_hidden_bias", "prevent")},
    "normal": Member("normal", {"mean": kept, "std": kept}),
    "uniform": Member("uniform", {"a": kept, "b": kept}),
    "constant": Member("constant", {"val": kept}),
    "orthogonal": Member("orthogonal", {"gain": kept}),
    "xavier_uniform": Member("xavier_uniform", {"gain": kept}),
    "xavier_normal": Member("xavier_normal", {"gain": kept}),
    "kaiming_uniform": Member("kaiming_uniform", {"a": kept, "mode": kept, "nonlinearity": kept}),
    "kaiming_normal": Member("kaiming_normal", {"a": kept, "mode": kept, "nonlinearity": kept}),
    "sparse": Member("sparse", {"sparsity": kept, "std": kept}),
    "uniform_unit_scaling": Member("uniform_unit_scaling", {"nonlinearity": kept}),
    "block_orthogonal": Member(
        "block_orthogonal",
        {"split_sizes": dropped("the blocks are the gates"), "gain": kept},
    ),
}
REGULARIZERS: dict[str, Member] = {name: Member(name, {"alpha": kept}) for name in ("l1", "l2")}


def initializer(here: Place, value: Any) -> Any:
    """Translate one Initializer."""
    return component(here, value, INITIALIZER_KEYS, "Initializer", default="normal")


def regularizer(here: Place, value: Any) -> Any:
    """Translate one Regularizer."""
    return component(here, value, REGULARIZERS, "Regularizer", default="l2")
