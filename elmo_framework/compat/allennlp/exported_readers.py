"""Our dataset readers in AllenNLP's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_framework.compat.allennlp.exported_parts import expressible, member
from elmo_framework.compat.allennlp.rules import Place, Rules, dropped, kept, renamed


def _scheme(*theirs: str) -> Any:
    """Return a rule for the scheme of labels, of which a reader has these."""

    def rule(here: Place, value: Any) -> Mapping[str, Any]:
        if value in theirs:
            return {here.key: value}
        return expressible(reason=f"it has {', '.join(theirs)}")(here, value)

    return rule


_KINDS = ("spacy", "whitespace")


def _tokenizer(here: Place, value: Any) -> Mapping[str, Any]:
    values = {"type": value} if isinstance(value, str) else dict(value)
    added: dict[str, Any] = {}
    if values["type"] == "add_tokens":
        added = {key: values[key] for key in ("start_tokens", "end_tokens") if values.get(key)}
        inner = values["tokenizer"]
        values = {"type": inner} if isinstance(inner, str) else dict(inner)
    rules: Rules = {"language": expressible("en"), "segmenter": dropped("of raw text alone")}
    written = member(here, values, dict.fromkeys(_KINDS, rules))
    return {} if written is None else {here.key: {**written, **added}}


_RECORDS: Rules = {
    "tokenizer": _tokenizer,
    "only": expressible({}, reason="it reads all records"),
    "skip_incomplete": expressible(False),
}
EXPORTED_READERS: dict[str, Rules] = {
    "conll2003": {"tag_label": kept, "coding_scheme": _scheme("BIOUL")},
    "conll2000": {"tag_label": kept, "coding_scheme": _scheme("BIO", "BIOUL")},
    "ontonotes_ner": {"coding_scheme": _scheme("BIO", "BIOUL")},
    "sequence_tagging": {"word_tag_delimiter": kept, "token_delimiter": kept},
    "srl": {
        "skip_sentences_without_predicates": expressible(False),
        "max_sentence_length": expressible(),
    },
    "snli": {
        **_RECORDS,
        "premise_key": expressible("sentence1"),
        "hypothesis_key": expressible("sentence2"),
        "label_key": expressible("gold_label"),
    },
    "sst_tokens": {
        "granularity": kept,
        "use_subtrees": kept,
        "min_phrase_length": expressible(1),
        "unescape": expressible(False, reason="it keeps the escapes of the treebank"),
    },
    "squad": {"tokenizer": _tokenizer, "passage_length_limit": expressible()},
    "coref": {
        "max_sentences": kept,
        "remove_singletons": renamed("remove_singleton_clusters"),
        "genre_pattern": dropped("the model reads no genre"),
    },
    "text_classification_json": {
        **_RECORDS,
        **dict.fromkeys(("text_key", "label_key", "max_sequence_length"), kept),
    },
}


def register_exported_reader(name: str, rules: Rules) -> None:
    """Add a reader of a plugin to those that are exported; AllenNLP's has the same name."""
    EXPORTED_READERS[name] = rules


def exported_reader(
    here: Place, values: Mapping[str, Any], indexers: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a reader.

    Args:
        here: its place.
        values: of it.
        indexers: by AllenNLP's names.
        model: our block.
    """
    members = {name: {"max_instances": kept, **rules} for name, rules in EXPORTED_READERS.items()}
    theirs = member(here, values, members) or {}
    if values["type"] == "coref":
        theirs["max_span_width"] = model.get("max_span_width")
    return {**theirs, "token_indexers": dict(indexers)}
