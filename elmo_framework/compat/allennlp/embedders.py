"""Token indexers and token embedders of AllenNLP: one object of both here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from elmo_framework.bilm.files.published import PUBLISHED
from elmo_framework.compat.allennlp.layers import pooler
from elmo_framework.compat.allennlp.namespaces import one_namespace, unseen_words
from elmo_framework.compat.allennlp.rules import (
    NO_ADDED_WORDS,
    Indexer,
    Member,
    Place,
    Rules,
    block,
    component,
    dropped,
    into,
    kept,
    only,
    unsupported,
)
from elmo_framework.config.types import MAX_WIDTH
from elmo_framework.errors import allowed, shown

_PADDING = dropped("padding has no effect here")
_COMMON: Rules = {
    "token_min_padding_length": _PADDING,
    "start_tokens": NO_ADDED_WORDS,
    "end_tokens": NO_ADDED_WORDS,
}
SPARSE = dropped("it changes the form of gradients only")
_NAMESPACE = dropped("characters have one vocabulary")


def _character_tokenizer(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate a tokenizer of words: bytes have a mark at both ends here, characters have none."""
    values = {"type": value} if isinstance(value, str) else value
    is_bytes = isinstance(values, dict) and values.get("byte_encoding") is not None
    rules: Rules = {
        "type": only("character"),
        "byte_encoding": only("utf-8", reason="becomes characters: 'bytes', of the embedder"),
        "lowercase_characters": only(False),
        **dict.fromkeys(("start_tokens", "end_tokens"), _mark if is_bytes else NO_ADDED_WORDS),
    }
    block(here, values, rules, "CharacterTokenizer")
    if is_bytes and not (values.get("start_tokens") and values.get("end_tokens")):
        here.note("differs", "bytes have a mark at both ends of a word here")
    return {"characters": "bytes" if is_bytes else "vocabulary"}


def _mark(here: Place, value: Any) -> Mapping[str, Any]:
    match value:
        case [] | [int()]:
            here.note("dropped", "bytes have a mark at both ends of a word here")
        case _:
            here.problem(f"expected the id of one mark, not {shown(value)}")
    return {}


INDEXERS: dict[str, Member] = {
    "single_id": Member(
        "single_id",
        {
            **_COMMON,
            "namespace": one_namespace("words"),
            "lowercase_tokens": kept,
            "feature_name": only("text"),
            "default_value": unsupported(),
        },
    ),
    "characters": Member(
        "characters",
        {
            **_COMMON,
            "namespace": _NAMESPACE,
            "character_tokenizer": _character_tokenizer,
            "min_padding_length": _PADDING,
        },
        implied={"characters": "vocabulary"},
    ),
    "elmo_characters": Member(
        "elmo_characters",
        {
            "namespace": _NAMESPACE,
            "token_min_padding_length": _PADDING,
            "tokens_to_add": unsupported(),
        },
    ),
    "pretrained_transformer_mismatched": Member(
        "pretrained_transformer_mismatched",
        {
            "model_name": dropped("that of the embedder"),
            "namespace": dropped("transformers have their own vocabulary"),
            "max_length": dropped("that of the embedder"),
            "tokenizer_kwargs": only({}),
        },
    ),
}
_FITTING = {
    "embedding": {"single_id"},
    "character_encoding": {"characters", "elmo_characters"},
    "elmo_token_embedder": {"elmo_characters"},
    "pretrained_transformer_mismatched": {"pretrained_transformer_mismatched"},
}


def token_indexers(here: Place, value: Any) -> Mapping[str, Any]:
    """Read the indexers: their embedders know what they read, apart from lowercase."""
    if not isinstance(value, dict):
        here.problem(f"expected an object, not {shown(value)}")
        return {}
    indexers = here.context.indexers
    for name, spec in value.items():
        place = here.at(name)
        if spec is None:
            place.problem("expected an object or a name, not None")
            continue
        read = component(place, spec, INDEXERS, "TokenIndexer", default="single_id")
        if read is None:
            continue
        lowercase = read.get("lowercase_tokens", False)
        if not isinstance(lowercase, bool):
            place.at("lowercase_tokens").problem(f"expected true or false, not {shown(lowercase)}")
            continue
        indexer = Indexer(read["type"], lowercase, read.get("characters"))
        if indexers.setdefault(name, indexer) != indexer:
            place.problem("differs from the indexer of the same name in the other reader")
        if lowercase:
            place.at("lowercase_tokens").note("becomes", "lowercase, of the embedder")
    here.note("dropped", "each token embedder knows what it reads")
    return {}


def _embedding_of_characters(here: Place, value: Any) -> Mapping[str, Any]:
    rules: Rules = {
        "embedding_dim": kept,
        "num_embeddings": dropped("it follows from the characters"),
        "vocab_namespace": _NAMESPACE,
        "padding_index": only(0),
        "trainable": only(True),
        "sparse": SPARSE,
        "type": only("embedding"),
    }
    return {here.key: block(here, value, rules, "embedding of characters")}


_ELMO_FILES: Rules = {
    "options_file": lambda here, value: {},
    "weight_file": lambda here, value: {},
}
_CACHED = dropped("the layers of whole sentences are cached")
ELMO: Rules = {
    **_ELMO_FILES,
    "dropout": kept,
    "requires_grad": kept,
    "projection_dim": kept,
    "do_layer_norm": lambda here, value: _mix(here, "layer_norm", value),
    "scalar_mix_parameters": lambda here, value: _mix(here, "scalar_mix_parameters", value),
    "vocab_to_cache": _CACHED,
    # Before AllenNLP 1.0.
    "namespace_to_cache": _CACHED,
}
TRANSFORMER_DROPPED = dropped("it changes speed and memory only")
EMBEDDERS: dict[str, Member] = {
    "embedding": Member(
        "embedding",
        {
            "embedding_dim": kept,
            "pretrained_file": kept,
            "trainable": kept,
            "vocab_namespace": one_namespace("words"),
            "num_embeddings": dropped("it follows from the vocabulary"),
            "padding_index": only(0),
            "sparse": SPARSE,
            "norm_type": only(2, 2.0),
            "scale_grad_by_freq": only(False),
            "max_norm": unsupported(),
            "projection_dim": kept,
            "weight": unsupported(),
        },
    ),
    "character_encoding": Member(
        "character_encoding",
        {
            "embedding": _embedding_of_characters,
            "encoder": into("encoder", pooler),
            "dropout": kept,
        },
    ),
    "elmo_token_embedder": Member("elmo_token_embedder", ELMO),
    "pretrained_transformer_mismatched": Member(
        "pretrained_transformer_mismatched",
        {
            "model_name": kept,
            "max_length": kept,
            "train_parameters": kept,
            "last_layer_only": kept,
            "sub_token_mode": kept,
            "gradient_checkpointing": TRANSFORMER_DROPPED,
            "load_weights": only(True),
            "tokenizer_kwargs": only({}),
            "transformer_kwargs": only({}),
            "sub_module": unsupported(),
            "override_weights_file": unsupported(),
            "override_weights_strip_prefix": unsupported(),
        },
    ),
}


def _mix(here: Place, key: str, value: Any) -> Mapping[str, Any]:
    here.note("becomes", f"mix.{key}")
    return {f"mix.{key}": value}


def elmo(here: Place, values: Any, ours: dict[str, Any]) -> dict[str, Any]:
    """Add the files of a biLM, and gather the keys of the layer mix."""
    mix = {key[4:]: ours.pop(key) for key in [*ours] if key.startswith("mix.")}
    if mix:
        ours["mix"] = {"type": "scalar_mix", **mix}
    if ours.get("requires_grad") is not True:
        ours["cache_dtype"] = _unrounded(here)
    files = [values.get(key) for key in ("options_file", "weight_file")]
    here.note(
        "differs",
        "each sentence starts from zero; AllenNLP continues from the batch before (state: 'carry')",
    )
    if any(file is not None and not isinstance(file, str) for file in files):
        here.problem(f"expected the paths of options_file and weight_file, not {shown(files)}")
        return ours
    if (name := published_name(files)) is not None:
        here.at("options_file").note("becomes", f"bilm: {name!r}")
        return {**_type(ours), "bilm": name, **ours}
    for key, file in zip(("options_file", "weight_file"), files, strict=True):
        if file is None:
            here.at(key).problem("is missing; both files are needed, or none")
        elif "://" in file:
            here.at(key).problem(
                f"{shown(file)} is not the address of a published biLM; download it, and name the "
                "file"
            )
    return {**_type(ours), "options_file": files[0], "weight_file": files[1], **ours}


def _unrounded(here: Place) -> str:
    here.at("cache_dtype").note("added", "float32; AllenNLP does not round its layers")
    return "float32"


def published_name(files: Sequence[str | None]) -> str | None:
    """Return our name of a published biLM by the URLs of its files; AllenNLP's default is one.

    Its files had several addresses over the years, all on S3.
    """
    if files == [None, None]:
        return "original"
    ends = [re.sub(r"^https?://([\w-]+\.)*amazonaws\.com/.*/", "", file or "") for file in files]
    for name, published in PUBLISHED.items():
        if ends == [f"elmo_{published}_{each}" for each in ("options.json", "weights.hdf5")]:
            return name
    return None


def _type(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {key: ours[key] for key in ("type",) if key in ours}


_BASIC = ("type", "token_embedders", "embedder_to_indexer_map", "allow_unmatched_keys")


def text_field_embedder(here: Place, value: Any) -> dict[str, Any]:
    """Translate a TextFieldEmbedder in any of its three forms."""
    blocks = token_blocks(here, value)
    if blocks is None:
        return {}
    place, inner = blocks
    readers = indexer_names(
        here.at("embedder_to_indexer_map"), value.get("embedder_to_indexer_map")
    )
    # AllenNLP concatenates in alphabetical order.
    ours = {name: _embedder(place.at(name), inner[name], readers) for name in sorted(inner)}
    return {"token_embedders": {name: each for name, each in ours.items() if each is not None}}


def token_blocks(here: Place, value: Any) -> tuple[Place, dict[str, Any]] | None:
    """Return the token embedders of a TextFieldEmbedder, and their place; None where it has none.

    They are in `token_embedders`; or, before AllenNLP 0.9, directly in the block.
    """
    if not isinstance(value, dict):
        here.problem(f"expected an object, not {shown(value)}")
        return None
    kind = value.get("type", "basic")
    if kind != "basic":
        here.at("type").missing(f"AllenNLP's TextFieldEmbedder {shown(kind)} has no counterpart")
        return None
    has_key = "token_embedders" in value
    inner = (
        value["token_embedders"]
        if has_key
        else {key: each for key, each in value.items() if key not in _BASIC}
    )
    place = here.at("token_embedders") if has_key else here
    unknown = [key for key in value if key not in _BASIC] if has_key else []
    for key in unknown:
        here.at(key).problem(f"not a key of AllenNLP's TextFieldEmbedder; {allowed(key, _BASIC)}")
    if not isinstance(inner, dict) or not inner:
        place.problem(f"expected an object of token embedders, not {shown(inner)}")
        return None
    if "allow_unmatched_keys" in value:
        here.at("allow_unmatched_keys").note("dropped", "each embedder knows what it reads")
    return place, inner


def indexer_names(here: Place, value: Any) -> dict[str, str]:
    """Return the indexer of each embedder that is mapped to one."""
    if value is None:
        return {}
    here.note("dropped", "each embedder knows what it reads")
    readers: dict[str, str] = {}
    for name, indexers in value.items() if isinstance(value, dict) else ():
        listed = [*indexers.values()] if isinstance(indexers, dict) else indexers
        match listed:
            case [str(indexer), *_]:
                readers[name] = indexer
            case _:
                here.at(name).problem(f"expected names of indexers, not {shown(indexers)}")
    if not isinstance(value, dict):
        here.problem(f"expected an object, not {shown(value)}")
    return readers


def _embedder(here: Place, value: Any, readers: Mapping[str, str]) -> dict[str, Any] | None:
    kind = value if isinstance(value, str) else None
    if isinstance(value, dict):
        kind = value.get("type", "embedding")
    if kind == "empty":
        here.note("dropped", "an empty embedder has no vectors")
        return None
    ours: dict[str, Any] | None = component(
        here, value, EMBEDDERS, "TokenEmbedder", default="embedding"
    )
    if ours is None:
        return None
    name = readers.get(here.key, here.key)
    indexer = here.context.indexers.get(name, Indexer("missing"))
    is_refused = name not in here.context.indexers and here.context.missing
    if indexer.kind not in _FITTING[ours["type"]] and not is_refused:
        needed = " or ".join(sorted(_FITTING[ours["type"]]))
        here.problem(
            f"reads the token indexer {name!r}, which is {indexer.kind}; it needs {needed}"
        )
    if ours["type"] == "elmo_token_embedder":
        return elmo(here, value if isinstance(value, dict) else {}, ours)
    if ours["type"] == "pretrained_transformer_mismatched":
        return _transformer(here, ours)
    return _with_indexer(here, indexer, ours)


def _transformer(here: Place, ours: dict[str, Any]) -> dict[str, Any]:
    """Note what differs, and add what keeps the layers of a frozen transformer as they are."""
    if "max_length" in ours:
        text = "longer sentences are read in windows that overlap; AllenNLP cuts them into parts"
        here.at("max_length").note("differs", text)
    if ours.get("last_layer_only") is False:
        text = "the layer of the embeddings is mixed too; AllenNLP leaves it out"
        here.at("last_layer_only").note("differs", f"{text}; layers selects others")
    if ours.get("train_parameters") is False:
        ours["cache_dtype"] = _unrounded(here)
    return ours


def _with_indexer(here: Place, indexer: Indexer, ours: dict[str, Any]) -> dict[str, Any]:
    """Add what is a matter of the indexer in AllenNLP."""
    if ours["type"] == "character_encoding":
        return _of_characters(here, indexer, ours)
    if indexer.lowercase:
        ours["lowercase"] = True
    if "pretrained_file" in ours:
        ours["max_unseen_words"] = unseen_words(here)
    return ours


def _of_characters(here: Place, indexer: Indexer, ours: dict[str, Any]) -> dict[str, Any]:
    if indexer.kind == "elmo_characters":
        here.note("differs", "bytes between two marks, without the padding of ELMo's characters")
    text = f"{MAX_WIDTH}; AllenNLP reads all characters of a word"
    here.at("max_characters_per_token").note("added", text)
    return {
        **ours,
        "characters": indexer.characters or "bytes",
        "max_characters_per_token": MAX_WIDTH,
    }
