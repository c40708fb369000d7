"""Configs in the style of AllenNLP, old and new, on the data of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures"
MINI = Path(__file__).parents[3] / "elmo_framework/bilm/mini"

WORDS = {"type": "embedding", "embedding_dim": 6}
CHARACTERS = {
    "type": "character_encoding",
    "embedding": {"embedding_dim": 4},
    "encoder": {
        "type": "cnn",
        "embedding_dim": 4,
        "num_filters": 5,
        "ngram_filter_sizes": [3],
        "conv_layer_activation": "relu",
    },
}
ELMO = {
    "type": "elmo_token_embedder",
    "options_file": str(MINI / "options.json"),
    "weight_file": str(MINI / "weights.hdf5"),
    "do_layer_norm": False,
    "dropout": 0.0,
}
_WORD_INDEXER = {"tokens": {"type": "single_id"}}
_FIELD = {"token_embedders": {"tokens": WORDS}}


def _lstm(input_size: int, hidden_size: int = 5, **others: Any) -> dict[str, Any]:
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": 1}
    return {"type": "lstm", "bidirectional": True, **sizes, **others}


def _layers(input_dim: int, *hidden_dims: int, last: str = "relu") -> dict[str, Any]:
    number = len(hidden_dims)
    activations = ["relu"] * (number - 1) + [last]
    return {
        "input_dim": input_dim,
        "num_layers": number,
        "hidden_dims": [*hidden_dims],
        "activations": activations,
        "dropout": [0.2] * (number - 1) + [0.0],
    }


def _experiment(reader: dict[str, Any], data: str, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset_reader": {"token_indexers": _WORD_INDEXER, **reader},
        "train_data_path": str(FIXTURES / data),
        "validation_data_path": str(FIXTURES / data),
        "model": {"text_field_embedder": _FIELD, **model},
        "data_loader": {"batch_size": 4, "shuffle": True},
        "trainer": {"optimizer": "adam", "num_epochs": 1, "cuda_device": -1},
    }


_ATTENTION = {"type": "linear", "combination": "x,y,x*y", "tensor_1_dim": 10, "tensor_2_dim": 10}
_DOT = {"type": "dot_product"}
CONFIGS: dict[str, dict[str, Any]] = {
    "crf_tagger": {
        "dataset_reader": {
            "type": "conll2003",
            "tag_label": "ner",
            "coding_scheme": "BIOUL",
            "lazy": False,
            "token_indexers": {
                "tokens": {"type": "single_id", "lowercase_tokens": True},
                "elmo": {"type": "elmo_characters"},
                "token_characters": {"type": "characters", "min_padding_length": 3},
            },
        },
        "train_data_path": str(FIXTURES / "ner/train.txt"),
        "validation_data_path": str(FIXTURES / "ner/valid.txt"),
        "model": {
            "type": "crf_tagger",
            "label_encoding": "BIOUL",
            "constrain_crf_decoding": True,
            "calculate_span_f1": True,
            "dropout": 0.5,
            "include_start_end_transitions": False,
            "text_field_embedder": {
                "token_embedders": {
                    "tokens": WORDS,
                    "elmo": ELMO,
                    "token_characters": CHARACTERS,
                }
            },
            "encoder": _lstm(6 + 256 + 5, num_layers=2, dropout=0.5),
            "regularizer": [["scalar_parameters", {"type": "l2", "alpha": 0.1}]],
        },
        "iterator": {"type": "basic", "batch_size": 4},
        "trainer": {
            "optimizer": {"type": "adam", "lr": 0.001},
            "validation_metric": "+f1-measure-overall",
            "num_serialized_models_to_keep": 3,
            "num_epochs": 1,
            "grad_norm": 5.0,
            "patience": 25,
            "cuda_device": -1,
        },
    },
    "simple_tagger": _experiment(
        {"type": "sequence_tagging"},
        "ner/train.txt",
        {
            "type": "simple_tagger",
            "encoder": {
                "type": "alternating_lstm",
                "input_size": 6,
                "hidden_size": 4,
                "num_layers": 2,
                "recurrent_dropout_probability": 0.1,
                "use_highway": True,
            },
        },
    ),
    "srl": _experiment(
        {"type": "srl"},
        "srl/sentences.gold_conll",
        {
            "type": "srl",
            "binary_feature_dim": 3,
            "encoder": {
                "type": "alternating_lstm",
                "input_size": 9,
                "hidden_size": 4,
                "num_layers": 2,
                "use_input_projection_bias": False,
            },
            "initializer": {
                "regexes": [["tag_projection_layer.*weight", {"type": "orthogonal"}]],
                "prevent_regexes": ["text_field_embedder.*"],
            },
        },
    ),
    "esim": _experiment(
        {"type": "snli", "tokenizer": {"type": "just_spaces"}},
        "snli/pairs.jsonl",
        {
            "type": "esim",
            "dropout": 0.5,
            "similarity_function": _DOT,
            "encoder": _lstm(6),
            "projection_feedforward": _layers(40, 5),
            "inference_encoder": _lstm(5),
            "output_feedforward": _layers(40, 5),
            "output_logit": {
                "input_dim": 5,
                "num_layers": 1,
                "hidden_dims": 3,
                "activations": "linear",
            },
            "initializer": [
                [".*linear_layers.*weight", {"type": "xavier_uniform"}],
                [".*weight_hh.*", {"type": "orthogonal"}],
                [".*bias_hh.*", {"type": "lstm_hidden_bias"}],
            ],
        },
    ),
    "bcn": _experiment(
        {"type": "sst_tokens", "granularity": "5-class", "use_subtrees": True},
        "sst/trees.txt",
        {
            "type": "bcn",
            "embedding_dropout": 0.25,
            "pre_encode_feedforward": _layers(6 + 256, 5),
            "encoder": _lstm(5),
            "integrator": _lstm(30),
            "integrator_dropout": 0.1,
            "elmo": {
                "options_file": ELMO["options_file"],
                "weight_file": ELMO["weight_file"],
                "do_layer_norm": False,
                "dropout": 0.0,
                "num_output_representations": 2,
            },
            "use_input_elmo": True,
            "use_integrator_output_elmo": True,
            "output_layer": {
                "input_dim": 4 * (10 + 256),
                "num_layers": 3,
                "output_dims": [12, 6, 5],
                "pool_sizes": 4,
                "dropout": [0.2, 0.3, 0.0],
            },
        },
    ),
    "bidaf": _experiment(
        {"type": "squad", "passage_length_limit": 400},
        "squad/train.json",
        {
            "type": "bidaf",
            "num_highway_layers": 2,
            "phrase_layer": _lstm(6),
            "matrix_attention": _ATTENTION,
            "modeling_layer": _lstm(40, dropout=0.0),
            "span_end_encoder": _lstm(70),
            "dropout": 0.2,
            "mask_lstms": True,
        },
    ),
    "coref": _experiment(
        {"type": "coref", "max_span_width": 4},
        "coreference/train.conll",
        {
            "type": "coref",
            "context_layer": _lstm(6),
            "mention_feedforward": _layers(10 + 10 + 6 + 7, 5, 5),
            "antecedent_feedforward": _layers(3 * 33 + 7, 5, 5),
            "feature_size": 7,
            "max_span_width": 4,
            "spans_per_word": 0.4,
            "max_antecedents": 10,
            "initializer": [
                [".*_span_width_embedding.weight", {"type": "xavier_normal"}],
                [".*_distance_embedding.weight", {"type": "xavier_normal"}],
                ["_context_layer._module.weight_ih.*", {"type": "xavier_normal"}],
            ],
        },
    ),
    "basic_classifier": _experiment(
        {"type": "text_classification_json", "tokenizer": "whitespace"},
        "pooled_classifier/train.jsonl",
        {
            "type": "basic_classifier",
            "seq2seq_encoder": _lstm(6),
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 10, "averaged": True},
            "feedforward": _layers(10, 5),
            "dropout": 0.1,
            "num_labels": 2,
        },
    ),
}

LANGUAGE_MODEL: dict[str, Any] = {
    "dataset_reader": {
        "type": "sharded",
        "base_reader": {
            "type": "simple_language_modeling",
            "tokenizer": {"type": "just_spaces"},
            "token_indexers": {
                "tokens": {"type": "single_id"},
                "token_characters": {"type": "elmo_characters"},
            },
            "max_sequence_length": 400,
            "start_tokens": ["<S>"],
            "end_tokens": ["</S>"],
        },
    },
    "train_data_path": str(FIXTURES / "lm/train.txt"),
    "validation_data_path": str(FIXTURES / "lm/valid.txt"),
    "vocabulary": {"tokens_to_add": {"tokens": ["<S>", "</S>"], "token_characters": ["<>/S"]}},
    "model": {
        "type": "language_model",
        "bidirectional": True,
        "num_samples": 5,
        "sparse_embeddings": True,
        "dropout": 0.1,
        "text_field_embedder": {
            "token_embedders": {
                "tokens": {"type": "empty"},
                "token_characters": {
                    "type": "character_encoding",
                    "embedding": {"num_embeddings": 262, "embedding_dim": 4},
                    "encoder": {
                        "type": "cnn-highway",
                        "activation": "relu",
                        "embedding_dim": 4,
                        "filters": [[1, 3], [2, 5]],
                        "num_highway": 1,
                        "projection_dim": 16,
                        "projection_location": "after_highway",
                        "do_layer_norm": True,
                    },
                },
            }
        },
        "contextualizer": {
            "type": "bidirectional_language_model_transformer",
            "input_dim": 16,
            "hidden_dim": 24,
            "num_layers": 2,
            "dropout": 0.1,
            "input_dropout": 0.1,
        },
    },
    "data_loader": {"batch_sampler": {"type": "bucket", "batch_size": 3}},
    "trainer": {
        "optimizer": {"type": "dense_sparse_adam"},
        "learning_rate_scheduler": {"type": "noam", "model_size": 16, "warmup_steps": 10},
        "grad_norm": 10.0,
        "num_epochs": 1,
        "cuda_device": -1,
    },
}
CONFIGS["simple_tagger"]["trainer"] |= {
    "optimizer": {
        "type": "adam",
        "parameter_groups": [
            [["^encoder", "projection.*bias"], {"lr": 0.01, "weight_decay": 0.1}],
            [["projection.*weight"], {}],
        ],
    },
    "no_grad": ["text_field_embedder"],
}
ALL_CONFIGS = {**CONFIGS, "language_model": LANGUAGE_MODEL}


def config(name: str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a config, with values changed by their dotted keys."""
    changed = deepcopy(ALL_CONFIGS[name])
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        node = changed
        for parent in parents:
            node = node[parent]
        node[last] = value
    return changed
