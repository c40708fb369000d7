"""Language models of AllenNLP: biLMs here, which read windows of running text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.embedders import SPARSE, indexer_names, token_blocks
from elmo_framework.compat.allennlp.rules import (
    EMPTY,
    NO_LIMIT,
    Context,
    Indexer,
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
    renamed,
    unsupported,
)
from elmo_framework.errors import shown

BILM = "bilm"
"""The name of the model here."""

_NUM_HEADS = 8
"""Of AllenNLP's transformer, which has no key for it."""

_UNROLL_STEPS = 20
_WIDTH = dropped("it follows from the token encoder")
_FROM_CHARACTERS = dropped("that of the embedding")
_CNN: Rules = {
    "embedding_dim": _FROM_CHARACTERS,
    "filters": kept,
    "num_highway": kept,
    "projection_dim": kept,
    "activation": kept,
    "projection_location": only("after_highway"),
    "do_layer_norm": renamed("layer_norm"),
}


def _embedding(here: Place, value: Any) -> Mapping[str, Any]:
    rules: Rules = {
        "type": only("embedding"),
        "num_embeddings": only(262, reason="the ids of bytes and marks"),
        "embedding_dim": kept,
        "vocab_namespace": dropped("characters have one vocabulary"),
        "padding_index": only(0),
        "trainable": only(True),
        "sparse": SPARSE,
    }
    return block(here, value, rules, "embedding of characters")


def _cnn(here: Place, value: Any) -> Mapping[str, Any]:
    ours = component(here, value, {"cnn-highway": Member("char_cnn", _CNN)}, "Seq2VecEncoder")
    if isinstance(value, dict) and value.get("do_layer_norm") is True:
        here.at("do_layer_norm").note("differs", "the variance is divided by n, not by n - 1")
    return {key: each for key, each in (ours or {}).items() if key != "type"}


_CHARACTERS = {
    "character_encoding": Member(
        "char_cnn", {"embedding": _embedding, "encoder": _cnn, "dropout": only(0, 0.0)}
    )
}


def _token_encoder(here: Place, value: Any) -> Any:
    """Translate a TextFieldEmbedder that has one embedder, of the characters of ELMo."""
    blocks = token_blocks(here, value)
    if blocks is None:
        return None
    place, inner = blocks
    read = {}
    for name, each in inner.items():
        if (each.get("type") if isinstance(each, dict) else each) == "empty":
            place.at(name).note("dropped", "an empty embedder has no vectors")
        else:
            read[name] = each
    if len(read) != 1:
        place.problem(f"expected one embedder, of characters, not {shown([*read])}")
        return None
    ((name, each),) = read.items()
    mapped = indexer_names(
        here.at("embedder_to_indexer_map"), value.get("embedder_to_indexer_map")
    ).get(name, name)
    if here.context.indexers.get(mapped, Indexer("missing")).kind != "elmo_characters":
        place.at(name).problem("needs the token indexer elmo_characters")
    return component(place.at(name), each, _CHARACTERS, "TokenEmbedder", default="embedding")


def _one_layer(here: Place, value: Any) -> Mapping[str, Any]:
    if value != 1:
        here.problem(
            "a second layer reads both directions, and so the words that it predicts; use 1, or "
            "the model 'bilm' with 'elmo_lstm'"
        )
    here.note("dropped", "one layer in each direction")
    return {}


def _heads(here: Place, value: Any) -> Mapping[str, Any]:
    is_width = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not is_width or value % (2 * _NUM_HEADS):
        here.problem(f"expected a multiple of {2 * _NUM_HEADS}, not {shown(value)}")
        return {}
    here.note("becomes", f"head_dim, of {_NUM_HEADS} heads")
    return {"head_dim": value // _NUM_HEADS}


def _no_input_dropout(here: Place, value: Any) -> Mapping[str, Any]:
    if value:
        here.note("differs", "the vectors of the words have no dropout here")
    else:
        here.note("dropped", "0 is the only value here")
    return {}


_LSTM = {
    "num_layers": 1,
    "projection_dim": None,
    "cell_clip": None,
    "projection_clip": None,
    "use_skip_connections": False,
}
_FORGET_BIAS = "the biases of forget gates start at 1, and there is one bias in place of two"
_CONTEXTUALIZERS: dict[str, Member] = {
    "lstm": Member(
        "elmo_lstm",
        {
            "input_size": _WIDTH,
            "hidden_size": renamed("cell_size"),
            "num_layers": _one_layer,
            "bidirectional": only(True),
            "bias": only(True),
            "stateful": only(False),
            "dropout": dropped("it is between layers"),
        },
        implied=_LSTM,
        differs=(_FORGET_BIAS,),
    ),
    "stacked_bidirectional_lstm": Member(
        "elmo_lstm",
        {
            "input_size": _WIDTH,
            "hidden_size": renamed("cell_size"),
            "num_layers": _one_layer,
            "use_highway": only(False),
            "recurrent_dropout_probability": only(0, 0.0),
            "layer_dropout_probability": dropped("it is between layers"),
            "stateful": only(False),
        },
        implied=_LSTM,
    ),
    "bidirectional_language_model_transformer": Member(
        "transformer",
        {
            "input_dim": _heads,
            "hidden_dim": renamed("feedforward_dim"),
            "num_layers": kept,
            "dropout": kept,
            "input_dropout": _no_input_dropout,
            "return_all_layers": only(False),
        },
        {"dropout": 0.1},
        implied={"num_heads": _NUM_HEADS},
        differs=(
            "rotary positions in place of sines, GELU in place of ReLU; its attention has neither "
            "biases nor dropout",
            "a word attends to at most memory_size words before it, also of former sentences",
        ),
    ),
}
_NEEDED = {"lstm": ("bidirectional", True), "stacked_bidirectional_lstm": ("use_highway", False)}
"""Keys whose defaults in AllenNLP have no counterpart."""


def _context_layers(here: Place, value: Any) -> Any:
    ours = component(here, value, _CONTEXTUALIZERS, "contextualizer")
    name = value.get("type") if isinstance(value, dict) else value
    if ours is not None and name in _NEEDED:
        key, needed = _NEEDED[str(name)]
        if not isinstance(value, dict) or value.get(key) is None:
            here.at(key).problem(f"its default has no counterpart here; set {str(needed).lower()}")
    return ours


_NO_EXPRESSIONS = only([], {}, reason=EMPTY)
_RULES: Rules = {
    "text_field_embedder": into("token_encoder", _token_encoder),
    "contextualizer": into("context_layers", _context_layers),
    "dropout": kept,
    "num_samples": kept,
    "sparse_embeddings": SPARSE,
    "initializer": _NO_EXPRESSIONS,
    "regularizer": _NO_EXPRESSIONS,
}
_DIFFERS = (
    "running text is read in windows, and each row continues from its state; AllenNLP reads each "
    "sentence by itself",
    "the loss is a sum over the steps of a window, AllenNLP's is a mean: compare gradients with "
    "grad_norm and grad_clipping",
)
_DEFAULTS = {"dropout": 0.0, "num_samples": None}


def _both_directions(here: Place, value: Any) -> Mapping[str, Any]:
    if value is not True:
        here.problem("a biLM here predicts in both directions; only true has a counterpart")
    here.note("dropped", "a biLM predicts in both directions")
    return {}


LANGUAGE_MODELS: dict[str, Member] = {
    "language_model": Member(
        BILM, {**_RULES, "bidirectional": _both_directions}, _DEFAULTS, differs=_DIFFERS
    ),
    "bidirectional-language-model": Member(BILM, _RULES, _DEFAULTS, differs=_DIFFERS),
}


def is_language_model(context: Context) -> bool:
    """Return whether the model is one of these, so that the data becomes windows of text."""
    kind = context.value("model", "type")
    return isinstance(kind, str) and kind in LANGUAGE_MODELS


def require_both_directions(here: Place, values: Mapping[str, Any]) -> None:
    """Report a language model that reads in one direction by default."""
    if values.get("type") == "language_model" and values.get("bidirectional") is None:
        here.at("bidirectional").problem("its default has no counterpart here; set true")


def _boundary(word: str) -> Rule:
    return only([word], reason="sentence boundaries are read and predicted")


def _length(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("differs", "longer sentences are read too")
    return {}


def text_reader(tokenizer: Rule, common: Rules) -> Member:
    """Return the counterpart of AllenNLP's reader of sentences.

    Args:
        tokenizer: its rule.
        common: the rules of the keys that all readers have.
    """
    return Member(
        "language_modeling",
        {
            **common,
            "tokenizer": tokenizer,
            "max_sequence_length": _length,
            "start_tokens": _boundary("<S>"),
            "end_tokens": _boundary("</S>"),
        },
        {"tokenizer": "spacy"},
    )


def added_words(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop the boundaries of sentences, which are in each vocabulary of a biLM."""
    known = {"tokens": {"<S>", "</S>"}}
    is_known = isinstance(value, dict) and all(
        isinstance(words, list) and {*map(str, words)} <= known.get(name, set())
        for name, words in value.items()
    )
    if not (is_known and is_language_model(here.context)):
        return unsupported("words are counted in the data")(here, value)
    for name in value:
        text = "the boundaries of sentences are in each vocabulary of a biLM"
        here.at(name).note("dropped", text)
    return {}


def windows(context: Context, key: str, loader: Mapping[str, Any]) -> dict[str, Any]:
    """Return a loader of windows in place of one of sentences.

    Args:
        context: of the translation.
        key: of the loader here.
        loader: translated.
    """
    rows, tokens = loader.get("batch_size"), loader.get("max_tokens")
    if isinstance(tokens, int):
        fitting = max(1, tokens // _UNROLL_STEPS)
        rows = min(rows, fitting) if isinstance(rows, int) else fitting
    limits = {"sentences": loader.get("batch_size"), "words": tokens}
    before = " and ".join(
        f"{limit} {unit}" for unit, limit in limits.items() if limit not in (None, NO_LIMIT)
    )
    text = f"{rows} rows of {_UNROLL_STEPS} words (unroll_steps) in place of {before}"
    here = Place(context).at(key)
    here.note("differs", text)
    if loader.get("shuffle") is False:
        here.at("shuffle").note("differs", "the sentences of training are shuffled")
    ours = {"type": "windows", "unroll_steps": _UNROLL_STEPS, "aligned": True}
    return {**ours, **({} if rows is None else {"batch_size": rows})}
