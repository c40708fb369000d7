"""Small archives of AllenNLP 2.10.1 and their outputs, for `tests/fixtures/allennlp`.

    PYTHONPATH=SCRIPTS PEERS/an/bin/python benchmarks/allennlp_archives.py tests/fixtures/allennlp

Run it in AllenNLP's environment (`PEERS`), with the folder of `allennlp_compat.py` (`SCRIPTS`). The
weights are random, the data those of `tests/fixtures/first_version`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import torch
from allennlp_peer import DATA, built, import_allennlp, outputs_alone, rounded, write_archive
from measuring import say

_WORDS, _HIDDEN, _SEED, _SCALE = 12, 10, 1, 0.4

_SENTENCE_ENCODER = {"type": "lstm", "hidden_size": _HIDDEN, "bidirectional": True}


def _encoder(input_size: int) -> dict[str, Any]:
    return {**_SENTENCE_ENCODER, "input_size": input_size}


def _feedforward(input_dim: int) -> dict[str, Any]:
    layer = {"num_layers": 1, "hidden_dims": _HIDDEN, "activations": "relu", "dropout": 0.0}
    return {"input_dim": input_dim, **layer}


_BOTH = 2 * _HIDDEN
_FEATURE = 3
_SPAN = 2 * _BOTH + _FEATURE + _WORDS
_CHARACTERS = {"type": "character_encoding", "embedding": {"embedding_dim": 6}}
_BYTES = {"byte_encoding": "utf-8", "start_tokens": [259], "end_tokens": [260]}


def _spelled(indexer: dict[str, Any], embedder: dict[str, Any]) -> Any:
    """Return file, reader and options of a tagger that reads characters."""
    characters = {"type": "characters", "min_padding_length": 4, **indexer}
    return (
        "ner.txt",
        {"type": "conll2003", "token_indexers": {**_INDEXERS, "token_characters": characters}},
        {
            "type": "simple_tagger",
            "text_field_embedder": {
                "token_embedders": {**_EMBEDDERS, "token_characters": {**_CHARACTERS, **embedder}}
            },
            "encoder": _encoder(_WORDS + 8),
        },
    )


def _parser(options: dict[str, Any], tag_dim: int = 0) -> Any:
    """Return file, reader and options of a parser, with vectors of parts of speech of a width."""
    return (
        "../../allennlp/trees.mrg",
        {"type": "ptb_trees"},
        {
            "type": "constituency_parser",
            **options,
            "encoder": {
                "type": "stacked_bidirectional_lstm",
                "input_size": _WORDS + tag_dim,
                "hidden_size": _HIDDEN,
                "num_layers": 1,
            },
            "span_extractor": {"type": "bidirectional_endpoint", "input_dim": _BOTH},
            "feedforward": _feedforward(_BOTH),
            "evalb_directory_path": None,
        },
    )


_TAG = 4
_INDEXERS = {"tokens": {"type": "single_id"}}
_EMBEDDERS = {"tokens": {"type": "embedding", "embedding_dim": _WORDS}}
_MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "crf_tagger": (
        "ner.txt",
        {"type": "conll2003"},
        {"encoder": _encoder(_WORDS), "label_encoding": "BIO", "calculate_span_f1": True},
    ),
    "simple_tagger": (
        "ner.txt",
        {"type": "conll2003"},
        {"encoder": {**_encoder(_WORDS), "type": "gru", "num_layers": 2}},
    ),
    "characters": _spelled(
        {},
        {
            "embedding": {"embedding_dim": 6, "vocab_namespace": "token_characters"},
            "encoder": {
                "type": "cnn",
                "embedding_dim": 6,
                "num_filters": 4,
                "ngram_filter_sizes": [2, 4],
            },
        },
    ),
    "bytes": _spelled(
        {"character_tokenizer": _BYTES},
        {
            "embedding": {"embedding_dim": 6, "num_embeddings": 262},
            "encoder": {
                "type": "lstm",
                "input_size": 6,
                "hidden_size": 4,
                "bidirectional": True,
            },
        },
    ),
    "stacked": (
        "ner.txt",
        {"type": "conll2003"},
        {
            "type": "simple_tagger",
            "encoder": {
                "type": "stacked_bidirectional_lstm",
                "input_size": _WORDS,
                "hidden_size": _HIDDEN,
                "num_layers": 2,
                "recurrent_dropout_probability": 0.1,
                "layer_dropout_probability": 0.1,
            },
        },
    ),
    "constituency_parser": _parser({}),
    "constituency_parser_tags": _parser(
        {"pos_tag_embedding": {"embedding_dim": _TAG, "vocab_namespace": "pos"}}, _TAG
    ),
    "srl": (
        "srl.gold_conll",
        {"type": "srl"},
        {
            "encoder": {
                "type": "alternating_lstm",
                "input_size": _WORDS + 10,
                "hidden_size": _HIDDEN,
                "num_layers": 4,
                "recurrent_dropout_probability": 0.1,
                "use_highway": True,
            },
            "binary_feature_dim": 10,
        },
    ),
    "decomposable_attention": (
        "snli.jsonl",
        {"type": "snli", "tokenizer": "spacy"},
        {
            "attend_feedforward": _feedforward(_WORDS),
            "matrix_attention": {"type": "dot_product"},
            "compare_feedforward": _feedforward(2 * _WORDS),
            "aggregate_feedforward": {
                "input_dim": 2 * _HIDDEN,
                "num_layers": 2,
                "hidden_dims": [_HIDDEN, 3],
                "activations": ["relu", "linear"],
                "dropout": [0.0, 0.0],
            },
        },
    ),
    "esim": (
        "snli.jsonl",
        {"type": "snli", "tokenizer": "spacy"},
        {
            "encoder": _encoder(_WORDS),
            "matrix_attention": {"type": "dot_product"},
            "projection_feedforward": _feedforward(4 * _BOTH),
            "inference_encoder": _encoder(_HIDDEN),
            "output_feedforward": _feedforward(4 * _BOTH),
            "output_logit": {**_feedforward(_HIDDEN), "hidden_dims": 3, "activations": "linear"},
        },
    ),
    "bcn": (
        "sst.txt",
        {"type": "sst_tokens", "granularity": "5-class"},
        {
            "pre_encode_feedforward": _feedforward(_WORDS),
            "encoder": _encoder(_HIDDEN),
            "integrator": _encoder(3 * _BOTH),
            "embedding_dropout": 0.1,
            "integrator_dropout": 0.1,
            "output_layer": {
                "input_dim": 4 * _BOTH,
                "num_layers": 3,
                "output_dims": [20, 10, 5],
                "pool_sizes": 4,
                "dropout": 0.0,
            },
        },
    ),
    "bidaf": (
        "squad.json",
        {"type": "squad"},
        {
            "num_highway_layers": 2,
            "phrase_layer": _encoder(_WORDS),
            "matrix_attention": {
                "type": "linear",
                "combination": "x,y,x*y",
                "tensor_1_dim": _BOTH,
                "tensor_2_dim": _BOTH,
            },
            "modeling_layer": _encoder(4 * _BOTH),
            "span_end_encoder": _encoder(7 * _BOTH),
            "dropout": 0.0,
        },
    ),
    "coref": (
        "coreference.conll",
        {"type": "coref", "max_span_width": 4},
        {
            "context_layer": _encoder(_WORDS),
            "mention_feedforward": _feedforward(_SPAN),
            "antecedent_feedforward": _feedforward(3 * _SPAN + _FEATURE),
            "feature_size": _FEATURE,
            "max_span_width": 4,
            "spans_per_word": 0.6,
            "max_antecedents": 5,
        },
    ),
    "basic_classifier": (
        "sst.txt",
        {"type": "sst_tokens"},
        {
            "seq2seq_encoder": _encoder(_WORDS),
            "seq2vec_encoder": {
                "type": "bag_of_embeddings",
                "embedding_dim": _BOTH,
                "averaged": True,
            },
            "feedforward": _feedforward(_BOTH),
        },
    ),
}
_OUTPUTS = (
    *("logits", "label_logits", "span_start_logits", "span_end_logits", "class_probabilities"),
    *("tags", "label", "best_span_str", "trees", "top_spans", "scores", "clusters"),
)
_NOT_RECORDED = {"srl": {"logits"}, "bcn": {"class_probabilities"}}


def main() -> int:
    """Make all archives, and one file with their outputs."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="of the archives")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    import_allennlp()
    outputs = {name: _made(name, folder / f"{name}.tar.gz") for name in _MODELS}
    lines = (f" {json.dumps(name)}: {json.dumps(rows)}" for name, rows in outputs.items())
    (folder / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


def _made(name: str, archive: Path) -> list[dict[str, Any]]:
    """Write the archive of a model; return its outputs for each example."""
    file, reader, options = _MODELS[name]
    config = {
        "dataset_reader": {"token_indexers": _INDEXERS, **reader},
        "train_data_path": file,
        "model": {
            "type": name,
            "text_field_embedder": {"token_embedders": _EMBEDDERS},
            **options,
        },
        "data_loader": {"batch_size": 4, "shuffle": True},
        "trainer": {"optimizer": "adam", "num_epochs": 1},
    }
    model, examples = built(config, (DATA / file).resolve())
    _randomize(model)
    write_archive(model, config, archive)
    outputs = outputs_alone(model, examples)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    say(f"{name}: {len(outputs)} examples, {parameters:,} parameters")
    recorded = [key for key in _OUTPUTS if key not in _NOT_RECORDED.get(name, set())]
    return [{key: rounded(each[key]) for key in recorded if key in each} for each in outputs]


def _randomize(model: Any) -> None:
    torch.manual_seed(_SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("_constraint_mask"):
                parameter.copy_(torch.randn_like(parameter) * _SCALE)
        if hasattr(model, "_antecedent_scorer"):  # so that some spans have no antecedent
            model._antecedent_scorer._module.bias -= 2


if __name__ == "__main__":
    sys.exit(main())
