"""How fast AllenNLP trains a head: the other side of `head_peers.py`, run in its environment.

The model is made by AllenNLP's own constructors from the sizes of our configuration, the batches by
its fields, indexers and padding. The same is done in an update as in ours.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from measuring import add_threads_argument, report, update_times

_BYTE_MARKS, _NUM_BYTE_IDS = (257, 258), 259
_MODULES = (
    "allennlp.modules.seq2seq_encoders",
    "allennlp.modules.seq2vec_encoders",
    "allennlp.modules.matrix_attention",
    "allennlp_models.classification.models.biattentive_classification_network",
    "allennlp_models.coref.models.coref",
    "allennlp_models.pair_classification.models.esim",
    "allennlp_models.rc.models.bidaf",
    "allennlp_models.structured_prediction.models.srl",
    "allennlp_models.tagging.models.crf_tagger",
)
Options = Mapping[str, Any]


def main() -> int:
    """Measure and report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    _import_allennlp(arguments.scripts)
    held = json.loads(arguments.batches.read_text(encoding="utf-8"))
    options = held["config"]["model"]
    vocabulary = _vocabulary(held["counts"])
    model = _model(options, vocabulary).train()
    batches = [_batch(examples, options, vocabulary) for examples in held["examples"]]
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    update = _update(model, parameters, held["config"]["trainer"])
    times = update_times([partial(update, batch) for batch in batches])
    report(
        bench="head_peers_allennlp",
        torch=torch.__version__,
        threads=arguments.threads,
        parameters=sum(parameter.numel() for parameter in parameters),
        **times,
        loss=update(batches[-1]),
    )
    return 0


def _import_allennlp(scripts: Path) -> None:
    """Import what is used of AllenNLP, which is older than the libraries that it stands on."""
    sys.path.insert(0, str(scripts))
    import_module("allennlp_compat")
    # Gone from transformers, and AllenNLP makes a subclass of it that nothing here uses. It is put
    # into the class of the module, as transformers makes a new module while it is imported.
    type(import_module("transformers")).AdamW = torch.optim.AdamW  # type: ignore[attr-defined]
    for name in _MODULES:
        import_module(name)


def _vocabulary(counts: Mapping[str, Mapping[str, int]]) -> Any:
    from allennlp.data import Vocabulary

    vocabulary = Vocabulary()
    for word in counts["words"]:
        vocabulary.add_token_to_namespace(word, "tokens")
    for label in counts.get("labels", {}):
        vocabulary.add_token_to_namespace(label, "labels")
    return vocabulary


def _update(model: Any, parameters: list[Any], trainer: Options) -> Any:
    from allennlp.common import Params
    from allennlp.training.optimizers import Optimizer

    named = [(name, held) for name, held in model.named_parameters() if held.requires_grad]
    optimizer = Optimizer.from_params(Params(dict(trainer["optimizer"])), model_parameters=named)

    def update(batch: Any) -> float:
        loss = model(**batch)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, trainer["grad_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss)

    return update


def _model(options: Options, vocabulary: Any) -> Any:
    from allennlp.common import Params
    from allennlp.models import Model

    embedders = options["embedder"]["token_embedders"]
    width = sum(map(_embedded_dim, embedders.values()))
    parts = PARTS[options["type"]](options, width, vocabulary.get_vocab_size("labels"))
    embedder = {"token_embedders": {name: _embedder(held) for name, held in embedders.items()}}
    params = {"type": options["type"], "text_field_embedder": embedder, **parts}
    return Model.from_params(Params(params), vocab=vocabulary)


def _embedded_dim(options: Options) -> int:
    if options["type"] == "embedding":
        return int(options["embedding_dim"])
    encoder = options["encoder"]
    return int(encoder["num_filters"]) * len(encoder["ngram_filter_sizes"])


def _embedder(options: Options) -> dict[str, Any]:
    if options["type"] == "embedding":
        kept = ("type", "embedding_dim", "trainable")
        return {key: options[key] for key in kept if key in options}
    dim = options["embedding"]["embedding_dim"]
    embedding = {"embedding_dim": dim, "num_embeddings": _NUM_BYTE_IDS, "padding_index": 0}
    return {
        **options,
        "embedding": embedding,
        "encoder": {**options["encoder"], "embedding_dim": dim},
    }


def _encoder(options: Options, input_dim: int) -> dict[str, Any]:
    return {**options, "input_size": input_dim}


def _encoded_dim(options: Options) -> int:
    return int(options["hidden_size"]) * (2 if options.get("bidirectional") else 1)


def _crf_tagger(options: Options, width: int, _: int) -> dict[str, Any]:
    return {
        "encoder": _encoder(options["encoder"], width),
        "dropout": options["dropout"],
        "label_encoding": "BIOUL",
        "include_start_end_transitions": options.get("include_start_end_transitions", False),
    }


def _srl(options: Options, width: int, _: int) -> dict[str, Any]:
    dim = options["binary_feature_dim"]
    encoder = _encoder(options["encoder"], width + dim)
    return {"encoder": encoder, "binary_feature_dim": dim, "ignore_span_metric": True}


def _esim(options: Options, width: int, num_labels: int) -> dict[str, Any]:
    inputs = 4 * _encoded_dim(options["encoder"])
    projection, inference = options["projection_feedforward"], options["inference_encoder"]
    pooled = 4 * _encoded_dim(inference)
    output = options["output_feedforward"]
    logit = {"num_layers": 1, "hidden_dims": num_labels, "activations": "linear"}
    return {
        "encoder": _encoder(options["encoder"], width),
        "matrix_attention": {"type": "dot_product"},
        "projection_feedforward": {"input_dim": inputs, **projection},
        "inference_encoder": _encoder(inference, projection["hidden_dims"]),
        "output_feedforward": {"input_dim": pooled, **output},
        "output_logit": {"input_dim": output["hidden_dims"], **logit},
        "dropout": options["dropout"],
    }


def _bcn(options: Options, width: int, num_labels: int) -> dict[str, Any]:
    before, output = options["pre_encode_feedforward"], dict(options["output_layer"])
    integrated = 3 * _encoded_dim(options["encoder"])
    num_layers = output["num_layers"]
    return {
        "embedding_dropout": options["embedding_dropout"],
        "pre_encode_feedforward": {"input_dim": width, **before},
        "encoder": _encoder(options["encoder"], before["hidden_dims"]),
        "integrator": _encoder(options["integrator"], integrated),
        "integrator_dropout": options["integrator_dropout"],
        "output_layer": {
            "input_dim": 4 * _encoded_dim(options["integrator"]),
            "num_layers": num_layers + 1,
            "hidden_dims": [*output["hidden_dims"], num_labels],
            "activations": [output["activations"]] * num_layers + ["linear"],
            "dropout": [*output["dropout"], 0.0],
        },
    }


def _coref(options: Options, width: int, _: int) -> dict[str, Any]:
    kept = "feature_size", "max_span_width", "spans_per_word", "max_antecedents", "lexical_dropout"
    span = 2 * _encoded_dim(options["encoder"]) + width + options["feature_size"]
    pair = 3 * span + options["feature_size"]
    return {
        **{key: options[key] for key in kept},
        "context_layer": _encoder(options["encoder"], width),
        "mention_feedforward": {"input_dim": span, **options["mention_feedforward"]},
        "antecedent_feedforward": {"input_dim": pair, **options["antecedent_feedforward"]},
    }


def _bidaf(options: Options, width: int, _: int) -> dict[str, Any]:
    encoded, modeled = (_encoded_dim(options[key]) for key in ("encoder", "modeling_layer"))
    dims = {"tensor_1_dim": encoded, "tensor_2_dim": encoded}
    return {
        "num_highway_layers": options["num_highway_layers"],
        "phrase_layer": _encoder(options["encoder"], width),
        "matrix_attention": {"type": "linear", **dims, "combination": "x,y,x*y"},
        "modeling_layer": _encoder(options["modeling_layer"], 4 * encoded),
        "span_end_encoder": _encoder(options["span_end_encoder"], 4 * encoded + 3 * modeled),
        "dropout": options["dropout"],
    }


PARTS = {
    "crf_tagger": _crf_tagger,
    "srl": _srl,
    "esim": _esim,
    "bcn": _bcn,
    "coref": _coref,
    "bidaf": _bidaf,
}


def _batch(examples: list[Any], options: Options, vocabulary: Any) -> Any:
    """Return the tensors that a model reads."""
    from allennlp.data import Batch, Instance

    indexers = {
        name: _indexer(held) for name, held in options["embedder"]["token_embedders"].items()
    }
    fields = partial(_FIELDS[options["type"]], indexers=indexers, options=options)
    batch = Batch([Instance(fields(example)) for example in examples])
    batch.index_instances(vocabulary)
    return batch.as_tensor_dict()


def _indexer(options: Options) -> Any:
    from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer
    from allennlp.data.tokenizers import CharacterTokenizer

    if options["type"] == "embedding":
        return SingleIdTokenIndexer(lowercase_tokens=options.get("lowercase", False))
    begin, end = _BYTE_MARKS
    widest = max(options["encoder"]["ngram_filter_sizes"])
    tokenizer = CharacterTokenizer("utf-8", start_tokens=[begin], end_tokens=[end])
    return TokenCharactersIndexer(character_tokenizer=tokenizer, min_padding_length=widest)


def _text(words: list[str], indexers: Any) -> Any:
    from allennlp.data import Token
    from allennlp.data.fields import TextField

    return TextField([Token(word) for word in words], indexers)


def _tagged_fields(example: Any, indexers: Any, options: Options) -> dict[str, Any]:
    from allennlp.data.fields import SequenceLabelField

    text = _text(example["words"], indexers)
    return {"tokens": text, "tags": SequenceLabelField(example["tags"], text)}


def _srl_fields(example: Any, indexers: Any, options: Options) -> dict[str, Any]:
    from allennlp.data.fields import MetadataField, SequenceLabelField

    text, [[predicate, tags]] = _text(example["words"], indexers), example["propositions"]
    is_predicate = [int(place == predicate) for place in range(len(tags))]
    return {
        "tokens": text,
        "verb_indicator": SequenceLabelField(is_predicate, text),
        "tags": SequenceLabelField(tags, text),
        "metadata": MetadataField({"words": example["words"], "verb": predicate}),
    }


def _pair_fields(example: Any, indexers: Any, options: Options) -> dict[str, Any]:
    from allennlp.data.fields import LabelField

    texts = {key: _text(example[key], indexers) for key in ("premise", "hypothesis")}
    return {**texts, "label": LabelField(example["label"])}


def _classified_fields(example: Any, indexers: Any, options: Options) -> dict[str, Any]:
    from allennlp.data.fields import LabelField

    return {"tokens": _text(example["words"], indexers), "label": LabelField(example["label"])}


def _document_fields(example: Any, indexers: Any, options: Options) -> Any:
    from allennlp_models.coref.util import make_coref_instance

    clusters = [[tuple(mention) for mention in cluster] for cluster in example["clusters"]]
    width = options["max_span_width"]
    return make_coref_instance(example["sentences"], indexers, width, clusters).fields


def _question_fields(example: Any, indexers: Any, options: Options) -> dict[str, Any]:
    from allennlp.data.fields import IndexField

    passage, question = (_text(example[key]["words"], indexers) for key in ("passage", "question"))
    start, end = (IndexField(place, passage) for place in example["span"])
    return {"passage": passage, "question": question, "span_start": start, "span_end": end}


_FIELDS = {
    "crf_tagger": _tagged_fields,
    "srl": _srl_fields,
    "esim": _pair_fields,
    "bcn": _classified_fields,
    "coref": _document_fields,
    "bidaf": _question_fields,
}


def _arguments() -> Namespace:
    parser = ArgumentParser(description="Measure how fast AllenNLP trains a head.")
    parser.add_argument("batches", type=Path, help="a file of batches")
    parser.add_argument(
        "--scripts", type=Path, required=True, help="the folder of allennlp_compat.py"
    )
    add_threads_argument(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
