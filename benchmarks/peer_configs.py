"""Configs of AllenNLP with the sizes of published models, on data of the tests.

There is one for every model that both have, and one for each further encoder, attention and
embedder. Nothing here imports the package or torch: AllenNLP's environment reads these configs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_FIXTURES = ROOT / "tests/fixtures"
_DATA = _FIXTURES / "first_version/data"
_MINI = ROOT / "elmo_framework/bilm/mini"
_ELMO_DIM = 256
Block = Mapping[str, Any]

_ELMO = {
    "options_file": str(_MINI / "options.json"),
    "weight_file": str(_MINI / "weights.hdf5"),
    "do_layer_norm": False,
    "dropout": 0.0,
}
_ELMO_EMBEDDER = {"elmo": {"type": "elmo_token_embedder", **_ELMO}}
_INDEXERS = {
    "tokens": {"type": "single_id", "lowercase_tokens": True},
    "token_characters": {"type": "characters", "min_padding_length": 5},
    "elmo": {"type": "elmo_characters"},
}
_BYTES = {"byte_encoding": "utf-8", "start_tokens": [259], "end_tokens": [260]}


def _words(dim: int) -> dict[str, Any]:
    return {"tokens": {"type": "embedding", "embedding_dim": dim}}


def _filters(dim: int, num_filters: int, width: int) -> dict[str, Any]:
    return {
        "type": "cnn",
        "embedding_dim": dim,
        "num_filters": num_filters,
        "ngram_filter_sizes": [width],
        "conv_layer_activation": "relu",
    }


def _characters(dim: int, num_filters: int, width: int) -> dict[str, Any]:
    return {
        "token_characters": {
            "type": "character_encoding",
            "embedding": {"embedding_dim": dim, "vocab_namespace": "token_characters"},
            "encoder": _filters(dim, num_filters, width),
        }
    }


def _lstm(input_size: int, hidden_size: int, num_layers: int = 1) -> dict[str, Any]:
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
    return {"type": "lstm", "bidirectional": True, **sizes}


def _layers(input_dim: int, hidden_dims: Any, activations: Any, num_layers: int = 1) -> Block:
    return {
        "input_dim": input_dim,
        "num_layers": len(hidden_dims) if isinstance(hidden_dims, list) else num_layers,
        "hidden_dims": hidden_dims,
        "activations": activations,
        "dropout": 0.0,
    }


def _linear(dim: int, combination: str = "x,y,x*y") -> Block:
    dims = {"tensor_1_dim": dim, "tensor_2_dim": dim}
    return {"type": "linear", "combination": combination, **dims}


def _config(file: str | Path, reader: Block, model: Block, embedders: Block) -> dict[str, Any]:
    return {
        "dataset_reader": {"token_indexers": {key: _INDEXERS[key] for key in embedders}, **reader},
        "train_data_path": str(_DATA / file),
        "model": {"text_field_embedder": {"token_embedders": {**embedders}}, **model},
        "data_loader": {"batch_size": 8, "shuffle": True},
        "trainer": {"optimizer": "adam", "num_epochs": 1},
    }


def _crf_tagger(embedders: Block, dim: int) -> dict[str, Any]:
    model = {"type": "crf_tagger", "label_encoding": "BIO", "encoder": _lstm(dim, 200, 2)}
    return _config("ner.txt", {"type": "conll2003"}, model, embedders)


def _simple_tagger(embedders: Block, dim: int) -> dict[str, Any]:
    model = {"type": "simple_tagger", "encoder": _lstm(dim, 200)}
    return _config("ner.txt", {"type": "conll2003"}, model, embedders)


def _srl(embedders: Block, dim: int) -> dict[str, Any]:
    encoder = {
        "type": "alternating_lstm",
        "input_size": dim + 100,
        "hidden_size": 300,
        "num_layers": 8,
        "recurrent_dropout_probability": 0.1,
        "use_highway": True,
    }
    model = {"type": "srl", "encoder": encoder, "binary_feature_dim": 100}
    return _config("srl.gold_conll", {"type": "srl"}, model, embedders)


_SNLI = {"type": "snli", "tokenizer": {"type": "spacy", "end_tokens": ["@@NULL@@"]}}


def _esim(embedders: Block, dim: int) -> dict[str, Any]:
    model = {
        "type": "esim",
        "encoder": _lstm(dim, 300),
        "matrix_attention": {"type": "dot_product"},
        "projection_feedforward": _layers(2400, 300, "relu"),
        "inference_encoder": _lstm(300, 300),
        "output_feedforward": _layers(2400, 300, "relu"),
        "output_logit": _layers(300, 3, "linear"),
    }
    return _config("snli.jsonl", _SNLI, model, embedders)


def _decomposable_attention(embedders: Block, dim: int) -> dict[str, Any]:
    model = {
        "type": "decomposable_attention",
        "attend_feedforward": _layers(dim, 200, "relu", 2),
        "matrix_attention": {"type": "dot_product"},
        "compare_feedforward": _layers(2 * dim, 200, "relu", 2),
        "aggregate_feedforward": _layers(400, [200, 3], ["relu", "linear"]),
    }
    return _config("snli.jsonl", _SNLI, model, embedders)


_MAXOUT = {"num_layers": 3, "output_dims": [1200, 600, 5], "pool_sizes": 4, "dropout": 0.0}


def _bcn(*elmo_flags: str) -> dict[str, Any]:
    """Return a config of a BCN with ELMo in some places."""
    at_input, at_output = (
        _ELMO_DIM * (f"use_{place}_elmo" in elmo_flags) for place in ("input", "integrator_output")
    )
    block = {"elmo": {**_ELMO, "num_output_representations": len(elmo_flags)}}
    model = {
        "type": "bcn",
        "embedding_dropout": 0.25,
        "pre_encode_feedforward": _layers(300 + at_input, 300, "relu"),
        "encoder": _lstm(300, 300),
        "integrator": _lstm(1800, 300),
        "integrator_dropout": 0.1,
        "output_layer": {"input_dim": 4 * (600 + at_output), **_MAXOUT},
        **(block if elmo_flags else {}),
        **dict.fromkeys(elmo_flags, True),
    }
    reader = {"type": "sst_tokens", "granularity": "5-class"}
    config = _config("sst.txt", reader, model, _words(300))
    if elmo_flags:
        config["dataset_reader"]["token_indexers"]["elmo"] = _INDEXERS["elmo"]
    return config


def _bidaf(embedders: Block, dim: int) -> dict[str, Any]:
    model = {
        "type": "bidaf",
        "num_highway_layers": 2,
        "phrase_layer": _lstm(dim, 100),
        "matrix_attention": _linear(200),
        "modeling_layer": _lstm(800, 100, 2),
        "span_end_encoder": _lstm(1400, 100),
        "dropout": 0.2,
    }
    return _config("squad.json", {"type": "squad"}, model, embedders)


def _coref(embedders: Block, dim: int) -> dict[str, Any]:
    span = 800 + dim + 20
    model = {
        "type": "coref",
        "context_layer": _lstm(dim, 200),
        "mention_feedforward": _layers(span, 150, "relu", 2),
        "antecedent_feedforward": _layers(3 * span + 20, 150, "relu", 2),
        "feature_size": 20,
        "max_span_width": 10,
        "spans_per_word": 0.4,
        "max_antecedents": 100,
    }
    reader = {"type": "coref", "max_span_width": 10}
    return _config("coreference.conll", reader, model, embedders)


def _basic_classifier(embedders: Block, dim: int) -> dict[str, Any]:
    model = {
        "type": "basic_classifier",
        "seq2seq_encoder": _lstm(dim, 150),
        "seq2vec_encoder": {"type": "boe", "embedding_dim": 300, "averaged": True},
        "feedforward": _layers(300, 100, "relu"),
    }
    return _config("sst.txt", {"type": "sst_tokens"}, model, embedders)


def _constituency_parser(embedders: Block, dim: int) -> dict[str, Any]:
    model = {
        "type": "constituency_parser",
        "encoder": _lstm(dim, 250, 2),
        "feedforward": _layers(500, 250, "relu"),
        "span_extractor": {"type": "bidirectional_endpoint", "input_dim": 500},
        "evalb_directory_path": None,
    }
    trees = _FIXTURES / "allennlp/trees.mrg"
    return _config(trees, {"type": "ptb_trees"}, model, embedders)


def _language_model() -> dict[str, Any]:
    encoder = {
        "type": "cnn-highway",
        "activation": "relu",
        "embedding_dim": 16,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128]],
        "num_highway": 2,
        "projection_dim": 128,
        "projection_location": "after_highway",
        "do_layer_norm": False,
    }
    embedding = {"num_embeddings": 262, "embedding_dim": 16}
    characters = {"type": "character_encoding", "embedding": embedding, "encoder": encoder}
    contextualizer = {
        "type": "stacked_bidirectional_lstm",
        "input_size": 128,
        "hidden_size": 128,
        "num_layers": 1,
        "use_highway": False,
    }
    model = {"type": "language_model", "bidirectional": True, "contextualizer": contextualizer}
    reader = {
        "type": "simple_language_modeling",
        "tokenizer": "just_spaces",
        "start_tokens": ["<S>"],
        "end_tokens": ["</S>"],
        "token_indexers": {"tokens": {"type": "single_id"}, "elmo": _INDEXERS["elmo"]},
    }
    embedders = {"tokens": {"type": "empty"}, "elmo": characters}
    return _config(_FIXTURES / "lm/valid.txt", reader, model, embedders)


def _changed(config: Block, changes: Block) -> dict[str, Any]:
    """Return a config with other values of some dotted keys."""
    changed = deepcopy(dict(config))
    for path, value in changes.items():
        *parents, last = path.split(".")
        block = changed
        for parent in parents:
            block = block[parent]
        block[last] = value
    return changed


_STACKED = {
    "type": "stacked_bidirectional_lstm",
    "input_size": 100 + 128,
    "hidden_size": 200,
    "num_layers": 2,
    "recurrent_dropout_probability": 0.5,
    "layer_dropout_probability": 0.5,
}
_COMPOSED = {
    "type": "compose",
    "encoders": [
        {"type": "gru", "input_size": 100, "hidden_size": 200, "num_layers": 2},
        {"type": "feedforward", "feedforward": _layers(200, 100, "tanh")},
    ],
}
_CNN = {"type": "cnn", "embedding_dim": 300, "num_filters": 100, "output_dim": 300}
_BILINEAR = {"type": "bilinear", "matrix_1_dim": 600, "matrix_2_dim": 600}
_ELMO_AT_BOTH = ("use_input_elmo", "use_integrator_output_elmo")
_EMBEDDERS = "model.text_field_embedder.token_embedders"

_MODELS = {
    "crf_tagger": _crf_tagger({**_words(50), **_characters(16, 128, 3)}, 178),
    "crf_tagger with ELMo": _crf_tagger({**_ELMO_EMBEDDER, **_words(50)}, _ELMO_DIM + 50),
    "simple_tagger": _simple_tagger(_words(100), 100),
    "simple_tagger with ELMo": _simple_tagger(_ELMO_EMBEDDER, _ELMO_DIM),
    "srl": _srl(_words(100), 100),
    "srl with ELMo": _srl(_ELMO_EMBEDDER, _ELMO_DIM),
    "esim": _esim(_words(300), 300),
    "esim with ELMo": _esim(_ELMO_EMBEDDER, _ELMO_DIM),
    "decomposable_attention": _decomposable_attention(_words(200), 200),
    "decomposable_attention with ELMo": _decomposable_attention(_ELMO_EMBEDDER, _ELMO_DIM),
    "bcn": _bcn(),
    "bcn with ELMo": _bcn(*_ELMO_AT_BOTH),
    "bidaf": _bidaf({**_words(100), **_characters(16, 100, 5)}, 200),
    "bidaf with ELMo": _bidaf({**_words(100), **_ELMO_EMBEDDER}, 100 + _ELMO_DIM),
    "coref": _coref({**_words(300), **_characters(8, 100, 5)}, 400),
    "coref with ELMo": _coref({**_ELMO_EMBEDDER, **_words(50)}, 50 + _ELMO_DIM),
    "basic_classifier": _basic_classifier(_words(300), 300),
    "basic_classifier with ELMo": _basic_classifier(
        {**_ELMO_EMBEDDER, **_words(50)}, 50 + _ELMO_DIM
    ),
    "constituency_parser": _constituency_parser(_words(100), 100),
    "constituency_parser with ELMo": _constituency_parser(_ELMO_EMBEDDER, _ELMO_DIM),
    "language_model": _language_model(),
}
_CHANGES: dict[str, tuple[str, Block]] = {
    "without transitions at both ends": (
        "crf_tagger",
        {"model.include_start_end_transitions": False, "model.label_encoding": None},
    ),
    "stacked_bidirectional_lstm": (
        "crf_tagger",
        {
            f"{_EMBEDDERS}.tokens.embedding_dim": 100,
            "model.encoder": _STACKED,
            "model.feedforward": _layers(400, 400, "tanh"),
        },
    ),
    "characters by an LSTM": (
        "crf_tagger",
        {f"{_EMBEDDERS}.token_characters.encoder": _lstm(16, 64)},
    ),
    "bytes": (
        "crf_tagger",
        {
            "dataset_reader.token_indexers.token_characters.character_tokenizer": _BYTES,
            f"{_EMBEDDERS}.token_characters.embedding": {
                "embedding_dim": 16,
                "num_embeddings": 262,
            },
        },
    ),
    "gru and feedforward, composed": ("simple_tagger", {"model.encoder": _COMPOSED}),
    "pass_through": (
        "simple_tagger",
        {"model.encoder": {"type": "pass_through", "input_dim": 100}},
    ),
    "layer norm and projection of ELMo": (
        "simple_tagger with ELMo",
        {
            f"{_EMBEDDERS}.elmo.do_layer_norm": True,
            f"{_EMBEDDERS}.elmo.projection_dim": 64,
            "model.encoder.input_size": 64,
        },
    ),
    "without highway": ("srl", {"model.encoder.use_highway": False}),
    "one bias": ("srl", {"model.encoder.use_input_projection_bias": False}),
    "bilinear": ("esim", {"model.matrix_attention": _BILINEAR}),
    "cosine": ("esim", {"model.matrix_attention": {"type": "cosine"}}),
    "linear attention, projected words": (
        "decomposable_attention",
        {
            "model.matrix_attention": _linear(200),
            f"{_EMBEDDERS}.tokens": {"embedding_dim": 300, "projection_dim": 200},
        },
    ),
    "linear layers at the end": (
        "bcn",
        {"model.output_layer": _layers(2400, [600, 5], ["relu", "linear"])},
    ),
    "sums and differences": (
        "bidaf",
        {"model.matrix_attention": _linear(200, "y,x+y,x-y,x*y")},
    ),
    "scaled_dot_product": ("bidaf", {"model.matrix_attention": {"type": "scaled_dot_product"}}),
    "sum of vectors": ("basic_classifier", {"model.seq2vec_encoder.averaged": False}),
    "cnn": (
        "basic_classifier",
        {
            "model.seq2vec_encoder": _CNN,
            # Its convolutions fail if all texts of a batch are shorter than the widest filter.
            "dataset_reader.token_indexers.tokens.token_min_padding_length": 5,
        },
    ),
    "lstm": (
        "basic_classifier",
        {"model.seq2seq_encoder": None, "model.seq2vec_encoder": _lstm(300, 150, 2)},
    ),
    "gru": (
        "basic_classifier with ELMo",
        {"model.seq2vec_encoder": {"type": "gru", "input_size": 300, "hidden_size": 300}},
    ),
    "lstm contextualizer": ("language_model", {"model.contextualizer": _lstm(128, 128)}),
}
CONFIGS: dict[str, dict[str, Any]] = {
    **_MODELS,
    "bcn with ELMo at its input": _bcn(_ELMO_AT_BOTH[0]),
    "bcn with ELMo at its output": _bcn(_ELMO_AT_BOTH[1]),
    **{
        f"{name}, {variant}": _changed(_MODELS[name], changes)
        for variant, (name, changes) in _CHANGES.items()
    },
}
"""By a name that starts with the type of the model."""
