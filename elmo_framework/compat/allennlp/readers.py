"""Dataset readers and tokenizers of AllenNLP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.embedders import token_indexers
from elmo_framework.compat.allennlp.language_models import text_reader
from elmo_framework.compat.allennlp.namespaces import OF_READERS, one_namespace
from elmo_framework.compat.allennlp.rules import (
    Member,
    Place,
    Rules,
    block,
    component,
    dropped,
    kept,
    only,
    renamed,
    unsupported,
)
from elmo_framework.errors import shown

_COMMON: Rules = {
    "token_indexers": token_indexers,
    "lazy": dropped("readers always stream"),
    "max_instances": kept,
    "cache_directory": dropped("it changes speed only"),
    "manual_distributed_sharding": dropped("it changes speed only"),
    "manual_multiprocess_sharding": dropped("it changes speed only"),
}
_ADDED: Rules = {"start_tokens": kept, "end_tokens": kept}
_ANNOTATIONS = dropped("the readers need words only")


def _language(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the name of a pipeline of spaCy, such as `en_core_web_sm`, to its language."""
    code = value.partition("_")[0] if isinstance(value, str) else ""
    if len(code) not in (2, 3):
        here.problem(f"expected a pipeline such as 'en_core_web_sm', not {shown(value)}")
        return {}
    here.note("becomes", f"language: {code!r}, whose rules the pipeline has")
    return {"language": code}


_SPACY: Rules = {
    **_ADDED,
    "language": _language,
    "pos_tags": _ANNOTATIONS,
    "parse": _ANNOTATIONS,
    "ner": _ANNOTATIONS,
    "keep_spacy_tokens": _ANNOTATIONS,
    "split_on_spaces": only(False),
}
TOKENIZERS: dict[str, Member] = {
    "spacy": Member("spacy", _SPACY),
    "whitespace": Member("whitespace"),
    "just_spaces": Member("whitespace"),
}


def _tokenizer(here: Place, value: Any) -> Mapping[str, Any]:
    return {here.key: tokenizer(here, value)}


def _passage_tokenizer(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate a Tokenizer of text whose words have offsets, so that none can be added."""
    ours = tokenizer(here, value)
    if isinstance(ours, dict) and ours["type"] == "add_tokens":
        here.problem("start_tokens and end_tokens are not in the text, where answers are found")
    return {here.key: ours}


def tokenizer(here: Place, value: Any) -> Any:
    """Translate a Tokenizer; words that it adds to each text are added by another here."""
    ours = _splitter(here, value)
    if not isinstance(ours, dict):
        return ours
    added = {key: tokens for key in _ADDED if (tokens := ours.pop(key, None))}
    inner = ours["type"] if len(ours) == 1 else ours
    if not added:
        return inner
    here.note("becomes", "add_tokens, around the tokenizer")
    return {"type": "add_tokens", "tokenizer": inner, **added}


def _word_splitter(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("becomes", "the tokenizer")
    return {"splitter": component(here, value, TOKENIZERS, "WordSplitter")}


def _splitter(here: Place, value: Any) -> Any:
    """Translate a Tokenizer; before AllenNLP 1.0 the type `word` has a `word_splitter`."""
    is_word = isinstance(value, dict) and value.get("type", "word") == "word"
    if value != "word" and not is_word:
        return component(here, value, TOKENIZERS, "Tokenizer")
    values = {} if value == "word" else {key: each for key, each in value.items() if key != "type"}
    rules: Rules = {
        **_ADDED,
        "word_splitter": _word_splitter,
        "word_filter": only("pass_through", {"type": "pass_through"}),
        "word_stemmer": only("pass_through", {"type": "pass_through"}),
    }
    ours = block(here, values, rules, "WordTokenizer")
    splitter = ours.pop("splitter", {"type": "spacy"})
    return {**splitter, **ours} if isinstance(splitter, dict) else splitter


def _coding_scheme(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate the scheme of labels; AllenNLP's 'IOB1' leaves them as they are in the file."""
    if value == "IOB1":
        here.note("dropped", "the labels stay as they are in the file")
        return {}
    if here.key != "coding_scheme":
        here.note("becomes", "coding_scheme")
    return {"coding_scheme": value}


_COLUMNS: Rules = {
    **_COMMON,
    "tag_label": kept,
    "coding_scheme": _coding_scheme,
    "convert_to_coding_scheme": _coding_scheme,
    "feature_labels": only([], reason="no further columns are read"),
    "label_namespace": one_namespace("labels"),
}
_SQUAD = Member(
    "squad",
    {
        **_COMMON,
        "tokenizer": _passage_tokenizer,
        "passage_length_limit": lambda here, value: _passage_limit(here, value),
        "question_length_limit": unsupported("leave it out to read whole questions"),
        "skip_invalid_examples": lambda here, value: _skipped(here, value),
        "skip_impossible_questions": only(False),
        "no_answer_token": unsupported("see no_answer of the model"),
    },
)


def _passage_limit(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("differs", "longer passages are skipped; AllenNLP cuts those whose answer remains")
    return {here.key: value}


def _skipped(here: Place, value: Any) -> Mapping[str, Any]:
    here.note("dropped", "it concerns passages that are cut, which are skipped here")
    return {}


def _singletons(here: Place, value: Any) -> Mapping[str, Any]:
    return renamed("remove_singletons")(here, value)


def _span_width(here: Place, value: Any) -> Mapping[str, Any]:
    width = here.context.value("model", "max_span_width")
    if value != width:
        here.problem(f"{shown(value)} is not max_span_width of the model, {shown(width)}")
    here.note("dropped", "it is max_span_width of the model")
    return {}


def _base(here: Place, value: Any) -> Mapping[str, Any]:
    return {"base": reader(here, value)}


_DOMAIN = unsupported("use a pattern of files, such as train/**/nw/**/*gold_conll")
READERS: dict[str, Member] = {
    "conll2003": Member("conll2003", _COLUMNS),
    "conll2000": Member("conll2000", _COLUMNS),
    "ontonotes_ner": Member(
        "ontonotes_ner", {**_COMMON, "coding_scheme": kept, "domain_identifier": _DOMAIN}
    ),
    "sequence_tagging": Member(
        "sequence_tagging", {**_COMMON, "word_tag_delimiter": kept, "token_delimiter": kept}
    ),
    "srl": Member(
        "srl", {**_COMMON, "domain_identifier": _DOMAIN, "bert_model_name": unsupported()}
    ),
    "snli": Member(
        "snli",
        {
            **_COMMON,
            "tokenizer": _tokenizer,
            "combine_input_fields": only(False),
            "collapse_labels": only(False),
        },
    ),
    "sst_tokens": Member(
        "sst_tokens",
        {
            **_COMMON,
            "use_subtrees": kept,
            "granularity": kept,
            "tokenizer": unsupported("the trees have words"),
        },
        {"unescape": False},
    ),
    "squad": _SQUAD,
    "squad1": _SQUAD,
    "coref": Member(
        "coref",
        {
            **_COMMON,
            "max_span_width": _span_width,
            "max_sentences": kept,
            "remove_singleton_clusters": _singletons,
            "wordpiece_modeling_tokenizer": unsupported(),
        },
    ),
    "simple_language_modeling": text_reader(_tokenizer, _COMMON),
    "text_classification_json": Member(
        "text_classification_json",
        {
            **_COMMON,
            "tokenizer": _tokenizer,
            "max_sequence_length": kept,
            "text_key": kept,
            "label_key": kept,
            "segment_sentences": only(False),
            "skip_label_indexing": only(False),
        },
    ),
}
_SPEED = dropped("it changes speed only")
_SHARDS: Rules = {
    **_COMMON,
    "base_reader": _base,
    "epochs_per_read": only(1),
    "num_workers": _SPEED,
    "output_queue_size": _SPEED,
}


READER_RULES = _COMMON
"""The rules of the keys that all readers of AllenNLP have."""


def register_reader(
    name: str, member: Member, *, namespaces: Mapping[str, str] | None = None
) -> None:
    """Add a reader of a plugin to those that are translated.

    Args:
        name: AllenNLP's.
        member: its counterpart.
        namespaces: our vocabularies by AllenNLP's namespaces that the reader counts in addition to
            those of words, characters and labels; they have padding and an unknown item.
    """
    READERS[name] = member
    OF_READERS[name] = namespaces or {}


def reader(here: Place, value: Any) -> Any:
    """Translate a DatasetReader; a reader of shards is its base reader and a pattern of files."""
    if isinstance(value, dict) and value.get("type") in ("sharded", "multiprocess"):
        here.note("dropped", f"{value['type']}: the data path may be a pattern of files")
        values = {key: each for key, each in value.items() if key != "type"}
        return block(here, values, _SHARDS, "ShardedDatasetReader").get("base")
    return component(here, value, READERS, "DatasetReader")
