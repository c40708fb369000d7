"""Our token embedders in AllenNLP's form: embedders, indexers, vocabularies and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_framework.compat.allennlp.exported_parts import (
    TRAINING_ONLY,
    exported_pooler,
    expressible,
    member,
    part,
)
from elmo_framework.compat.allennlp.rules import Place, Rules, dropped, kept
from elmo_framework.config.types import MAX_WIDTH
from elmo_framework.data.characters import CharacterIndexer
from elmo_framework.data.vocabulary import Vocabulary
from elmo_framework.embedders.character_encoding import CharacterEncodingTokenEmbedder
from elmo_framework.embedders.elmo import ElmoTokenEmbedder
from elmo_framework.embedders.embedding import EmbeddingTokenEmbedder
from elmo_framework.embedders.text_embedder import TextEmbedder

_UNKNOWN_ITEM = "@@UNKNOWN@@"
_NUM_SPECIAL = 2  # padding and unknown
_NUM_BYTES, _MARKS = 256, (259, 260)
_NUM_BYTE_ROWS = 262
_OF_WORDS, _OF_CHARACTERS = "tokens", "token_characters"


@dataclass(frozen=True)
class Embedded:
    """What the token embedders of a model are in AllenNLP.

    Attributes:
        embedders: by name.
        indexers: by name.
        namespaces: the items of each vocabulary, without padding.
        tables: weights that have other rows, by our names of the parameters.
    """

    embedders: dict[str, Any] = field(default_factory=dict)
    indexers: dict[str, Any] = field(default_factory=dict)
    namespaces: dict[str, list[str]] = field(default_factory=dict)
    tables: dict[str, Tensor] = field(default_factory=dict)


def padded_namespace(vocabulary: Vocabulary) -> list[str]:
    """Return the items of a vocabulary with padding and an unknown item, as AllenNLP saves them."""
    return [_UNKNOWN_ITEM, *vocabulary.items[_NUM_SPECIAL:]]


def embedders(here: Place, values: Any, module: nn.Module, into: Embedded) -> dict[str, Any]:
    """Write the token embedders of a model.

    Args:
        here: the place of `embedder`.
        values: of it.
        module: that of ours.
        into: takes what they need.
    """
    assert isinstance(module, TextEmbedder)
    inner = here.at("token_embedders")
    if [*values["token_embedders"]] != sorted(values["token_embedders"]):
        inner.problem("AllenNLP concatenates in alphabetical order; these names are in another")
    for name, each in values["token_embedders"].items():
        own = module.get_submodule(f"token_embedders.{name}")
        written = _embedder(inner.at(name), each, own, _Target(name, into))
        if written is not None:
            into.embedders[name] = written
    return {"token_embedders": into.embedders}


@dataclass(frozen=True)
class _Target:
    name: str
    embedded: Embedded

    @property
    def table(self) -> str:
        return f"embedder.token_embedders.{self.name}.embedding.weight"


def _embedder(
    here: Place, values: Any, module: nn.Module, target: _Target
) -> dict[str, Any] | None:
    loading = dropped("the vectors are in the archive")
    members: dict[str, Rules] = {
        "embedding": {
            **dict.fromkeys(("embedding_dim", "trainable", "projection_dim"), kept),
            "lowercase": dropped("of the indexer"),
            "case_fallback": expressible(False),
            **dict.fromkeys(
                (
                    *("pretrained_file", "pretrained_format", "min_count", "normalize"),
                    *("max_unseen_words", "missing"),
                ),
                loading,
            ),
        },
        "character_encoding": {
            "embedding": kept,
            "encoder": part("encoder", exported_pooler, module, "encoder"),
            "characters": dropped("of the indexer"),
            "dropout": kept,
            "max_characters_per_token": expressible(
                MAX_WIDTH, reason="it reads all characters of a word"
            ),
        },
        "elmo_token_embedder": ELMO,
    }
    theirs = member(here, values, members)
    if theirs is None:
        return None
    if isinstance(module, EmbeddingTokenEmbedder):
        return _of_words(theirs, module, target)
    if isinstance(module, ElmoTokenEmbedder):
        target.embedded.indexers[target.name] = {"type": "elmo_characters"}
        return {**theirs, **elmo(here, values, module)}
    return _of_characters(theirs, values, module, target)


def _of_words(
    theirs: dict[str, Any], module: EmbeddingTokenEmbedder, target: _Target
) -> dict[str, Any]:
    """Add the words of a file that training has not seen to the vocabulary and to the table."""
    unseen = module.unseen
    items = [*padded_namespace(module.indexer.vocabulary), *unseen.rows]
    namespaces = target.embedded.namespaces
    name = _OF_WORDS
    if namespaces.setdefault(name, items) != items:
        name = f"{_OF_WORDS}_{target.name}"
        namespaces[name] = items
        theirs["vocab_namespace"] = name
    target.embedded.indexers[target.name] = {
        "type": "single_id",
        "namespace": name,
        "lowercase_tokens": module.indexer.lowercase,
    }
    table = torch.cat([module.embedding.weight, unseen.vectors[1:]])
    target.embedded.tables[target.table] = table
    return theirs


def _of_characters(
    theirs: dict[str, Any], values: Mapping[str, Any], module: nn.Module, target: _Target
) -> dict[str, Any]:
    sizes = values["encoder"].get("ngram_filter_sizes") or [1]
    indexer: dict[str, Any] = {"type": "characters", "min_padding_length": max(sizes)}
    embedding = dict(theirs["embedding"])
    if values["characters"] == "bytes":
        begin, end = _MARKS
        tokenizer = {"byte_encoding": "utf-8", "start_tokens": [begin], "end_tokens": [end]}
        indexer["character_tokenizer"] = tokenizer
        embedding["num_embeddings"] = _NUM_BYTE_ROWS
        own = module.get_parameter("embedding.weight")
        table = own.new_zeros(_NUM_BYTE_ROWS, own.shape[1])
        table[[*range(1 + _NUM_BYTES), begin, end]] = own
        target.embedded.tables[target.table] = table
    else:
        assert isinstance(module, CharacterEncodingTokenEmbedder)
        assert isinstance(module.indexer, CharacterIndexer)
        items = padded_namespace(module.indexer.vocabulary)
        target.embedded.namespaces[_OF_CHARACTERS] = items
        embedding["vocab_namespace"] = _OF_CHARACTERS
    target.embedded.indexers[target.name] = indexer
    return {**theirs, "embedding": embedding}


ELMO: Rules = {
    "bilm": dropped("its files are named"),
    "options_file": dropped("its files are named"),
    "weight_file": dropped("its files are named"),
    "mix": dropped("its keys are those of the embedder"),
    "dropout": kept,
    "projection_dim": expressible(reason="leave it out"),
    "state": expressible("carry", reason="each row continues from the batch before"),
    "requires_grad": expressible(False, reason="its files are read, not tuned weights"),
    "precision": expressible("float32"),
    "cache": TRAINING_ONLY,
    "cache_dtype": TRAINING_ONLY,
}
_MIX: Rules = {
    "layer_norm": kept,
    "l2": TRAINING_ONLY,
    "scalar_mix_parameters": kept,
}


def elmo(here: Place, values: Mapping[str, Any], module: ElmoTokenEmbedder) -> dict[str, Any]:
    """Return the keys of an ELMo that need its module: those of its mix and its files."""
    theirs = member(here.at("mix"), values["mix"], {"scalar_mix": _MIX}) or {}
    norm = {"do_layer_norm": theirs.pop("layer_norm", False)}
    assert module.reference is not None
    weights = module.reference.path
    options = Path(values.get("options_file") or weights.parent / "options.json")
    for path, end in ((options, ".json"), (weights, ".hdf5")):
        if path.suffix != end or not path.is_file():
            here.problem(
                f"its biLM has no {end.lstrip('.')} file of bilm-tf; write one with elmo export, "
                "and name it with options_file and weight_file"
            )
            break
    theirs.pop("type", None)
    return {"options_file": str(options), "weight_file": str(weights), **norm, **theirs}
