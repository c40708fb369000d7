"""Translate a config of AllenNLP 0.8 to 2.10."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import chain
from math import sqrt
from typing import Any

from elmo_framework.compat.allennlp.batches import data_loader, iterator
from elmo_framework.compat.allennlp.expressions import expression_of, rules, translated
from elmo_framework.compat.allennlp.language_models import BILM, added_words, windows
from elmo_framework.compat.allennlp.models import initializer, model, regularizer
from elmo_framework.compat.allennlp.namespaces import (
    keeps_rare_words,
    names_of,
    namespaces,
    reader_block,
)
from elmo_framework.compat.allennlp.parameter_groups import frozen_expressions, group_expressions
from elmo_framework.compat.allennlp.parameter_names import Pair, names
from elmo_framework.compat.allennlp.readers import reader
from elmo_framework.compat.allennlp.recognize import mark_of_allennlp
from elmo_framework.compat.allennlp.render import as_text, summary
from elmo_framework.compat.allennlp.rules import (
    Context,
    Indexer,
    Place,
    Rule,
    Rules,
    block,
    dropped,
    into,
    kept,
    of_training,
    only,
    renamed,
    unsupported,
)
from elmo_framework.compat.allennlp.training import distributed, trainer
from elmo_framework.config.load import Translation
from elmo_framework.errors import ConfigError, allowed, shown

_SEEDS = dropped("random_seed fixes everything here")


def translate_allennlp(
    raw: Mapping[str, Any], source: str, *, has_weights: bool = False
) -> Translation | None:
    """Translate a config; None if it is not AllenNLP's.

    Args:
        raw: the config, with its overrides.
        source: its file, for messages.
        has_weights: whether it is that of a trained model, which needs no initial weights, and of
            which settings of the training without a counterpart are left out.

    Raises:
        ConfigError: with everything that has no counterpart: types first.
    """
    if mark_of_allennlp(raw) is None:
        return None
    context = Context(deepcopy(dict(raw)), has_weights=has_weights)
    ours = _translated(context)
    if context.missing or context.problems:
        problems = [*context.missing, *context.problems]
        raise ConfigError(f"{source}, written for AllenNLP", problems)
    return Translation(ours, as_text(ours, context.notes, source), summary(context.notes))


def _translated(context: Context) -> dict[str, Any]:
    top = Place(context)
    if reader_block(context.value("dataset_reader")).get("token_indexers") is None:
        context.indexers["tokens"] = Indexer("single_id")
    # The readers are first: embedders need to know their indexers.
    first = [key for key in _TOP if key in context.raw]
    ordered = {key: context.raw[key] for key in [*first, *context.raw]}
    ours = block(top, ordered, _TOP, "experiment")
    if context.missing or context.problems:
        return ours
    own = ours.get("model")
    if isinstance(own, dict) and own.get("type") == BILM:
        _read_windows(top, ours)
    else:
        _name_parameters(top, ours)
    _add_defaults(top, ours)
    order = [key for key in _ORDER if key in ours]
    return {key: ours[key] for key in [*order, *(ours.keys() - {*order})] if ours[key] is not None}


def _read_windows(top: Place, ours: dict[str, Any]) -> None:
    """Give a language model its loaders; refuse expressions, as its parameters have other names."""
    for key in ("data_loader", "validation_data_loader"):
        if isinstance(ours.get(key), dict):
            ours[key] = windows(top.context, key, ours[key])
    groups = [expressions for expressions, _ in group_expressions(top.context)]
    for place, _ in [*frozen_expressions(top.context), *chain.from_iterable(groups)]:
        place.problem("has no counterpart in a biLM here")


def _name_parameters(top: Place, ours: dict[str, Any]) -> None:
    """Translate the regular expressions: they need the names of the model's parameters."""
    theirs, own = top.context.value("model"), ours.get("model")
    if not (isinstance(own, dict) and isinstance(theirs, dict)):
        return
    pairs = names(own, has_input_elmo=theirs.get("use_input_elmo") is True)
    for key, translate in (("initializer", initializer), ("regularizer", regularizer)):
        if theirs.get(key) is not None:
            written = rules(top.at("model").at(key), theirs[key], pairs, translate)
            own |= {key: written} if written else {}
    if not top.context.has_weights:
        _add_initial_parameters(top, own, pairs)
    written = [translated(*each, pairs) for each in frozen_expressions(top.context)]
    frozen = [each for each in written if each is not None]
    if frozen:
        ours["trainer"]["no_grad"] = frozen
    groups = [
        {"parameters": [each for each in patterns if each is not None], **settings}
        for expressions, settings in group_expressions(top.context)
        if any(patterns := [translated(*each, pairs) for each in expressions])
    ]
    if groups:
        ours["trainer"]["parameter_groups"] = groups


_XAVIER = {"type": "xavier_uniform"}
_LINEAR = {"type": "kaiming_uniform", "a": sqrt(5)}
"""The weights of PyTorch's linear layers."""

_INITIAL: Mapping[str, Sequence[tuple[str, dict[str, Any]]]] = {
    "srl": [(r"^projection\.weight$", _LINEAR)],
    "bidaf": [
        (r"^highway\..*weight$", _LINEAR),
        # AllenNLP's gate is that of the carried vector.
        (r"^highway\..*carry\.bias$", {"type": "constant", "val": -1.0}),
    ],
}
"""AllenNLP's initial parameters where those of our model are others, by expressions of ours."""


def _add_initial_parameters(top: Place, own: dict[str, Any], pairs: Sequence[Pair]) -> None:
    """Add AllenNLP's initializers of what is not from a file and has no other rule."""
    embedders = own.get("embedder", {}).get("token_embedders", {})
    from_file = {
        f"embedder.token_embedders.{name}.embedding.weight"
        for name, values in embedders.items()
        if values.get("pretrained_file") is not None
    }
    here, rules = top.at("model").at("initializer"), own.get("initializer", [])
    # What AllenNLP's rules leave alone has the numbers of its class.
    applied = [pattern for pattern, each in rules if each not in ("prevent", {"type": "prevent"})]
    ours = sorted({name for _, name in pairs if name})
    left = [name for name in ours if not any(re.search(pattern, name) for pattern in applied)]
    added: list[Any] = []
    kinds = [(r"embedding\.weight$", _XAVIER), *_INITIAL.get(str(own.get("type")), ())]
    for expression, initial in kinds:
        names = {name for name in left if re.search(expression, name)} - from_file
        if names:
            pattern = expression_of(names, ours)
            here.note("added", f"{initial['type']} for {pattern}, as in AllenNLP at first")
            added.append([pattern, initial])
    if added:
        own["initializer"] = [*added, *rules]
    if any(re.search(r"^highway\..*transform\.bias$", name) for name in left):
        here.note("differs", "biases of the transformed vectors of highway layers start at zero")
    if not top.context.problems and _has_random_biases(top.context, pairs):
        here.note("differs", "biases of the inputs of an alternating_lstm start at zero")


def _has_random_biases(context: Context, pairs: Sequence[Pair]) -> bool:
    """Return whether AllenNLP draws the second biases of LSTMs, which are one with others here."""
    value = context.value("model", "initializer")
    listed = value.get("regexes") if isinstance(value, dict) else value
    patterns = [pattern for pattern, _ in listed or ()]
    biases = [theirs for theirs, ours in pairs if theirs.endswith("input_linearity.bias")]
    return any(not any(re.search(each, theirs) for each in patterns) for theirs in biases)


def _add_defaults(top: Place, ours: dict[str, Any]) -> None:
    """Add defaults of AllenNLP that are not those here."""
    if "datasets_for_vocab_creation" not in ours:
        splits = ["train", "validation", "test"]
        counted = [split for split in splits if f"{split}_data_path" in ours]
        if counted != ["train"]:
            text = f"{', '.join(counted)}: AllenNLP counts the words of all data by default"
            top.at("datasets_for_vocab_creation").note("added", text)
            ours["datasets_for_vocab_creation"] = counted


def _by_namespace(rule: Rule) -> Rule:
    """Return a rule for values by namespace, without the namespaces that nothing counts."""

    def of_counted(here: Place, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            return rule(here, value)
        if not value:
            here.note("dropped", "it is empty")
        counted = namespaces(here.context.raw)
        for name in value:
            if name not in counted:
                text = "no part of this config counts this namespace; it had no effect"
                here.at(name).note("dropped", text)
        left = {name: each for name, each in value.items() if name in counted}
        return rule(here, left) if left else {}

    return of_counted


def _sizes(here: Place, value: Any) -> Mapping[str, Any]:
    """Translate limits by namespace; one number is for all of them."""
    names = namespaces(here.context.raw)
    if isinstance(value, int) and not isinstance(value, bool):
        ours = sorted({*names.values()})
        here.note("becomes", f"{here.key} of {', '.join(ours)}")
        return {here.key: dict.fromkeys(ours, value)}
    if not isinstance(value, dict):
        here.problem(f"expected numbers by namespace, not {shown(value)}")
        return {}
    for name in value:
        if name != names[name]:
            here.at(name).note("becomes", f"{here.key}.{names[name]}")
    return {here.key: {names[name]: number for name, number in value.items()}}


def _pretrained(here: Place, value: Any) -> Mapping[str, Any]:
    """Drop files whose words have no limit anyway: they are kept whatever their count is."""
    limits = here.context.value("vocabulary", "min_count") or {}
    if not isinstance(value, dict):
        here.problem(f"expected files by namespace, not {shown(value)}")
    elif isinstance(limits, dict) and not limits.keys() & value.keys():
        here.note("dropped", "without min_count, all words of the data are in the vocabulary")
    elif {*value} == {*names_of(here.context.raw, "words")} and keeps_rare_words(here.context.raw):
        here.note("becomes", "max_unseen_words: null, of the embedder")
    else:
        here.problem(
            "with min_count, rare words are left out here; they keep their vectors only where all "
            "embedders of words name the same file and have trainable: false"
        )
    return {}


_FROM_FILES = dropped("becomes vocabulary.directory")
_COUNTED = "the words of the data are counted"
_KINDS = {
    "from_instances": _COUNTED,
    "default": _COUNTED,
    "from_files": "directory names its files",
    "extend": "directory names its files, and the words of the data are added",
}


def _kind(here: Place, value: Any) -> Mapping[str, Any]:
    if value in _KINDS:
        here.note("dropped", _KINDS[value])
    else:
        message = f"AllenNLP's Vocabulary {shown(value)} has no counterpart here"
        here.missing(f"{message}; {allowed(str(value), _KINDS)}")
    return {}


_VOCABULARY: Rules = {
    "type": _kind,
    "min_count": _by_namespace(_sizes),
    "max_vocab_size": _by_namespace(_sizes),
    "non_padded_namespaces": dropped("labels have no padding"),
    "padding_token": dropped("padding is no word"),
    "oov_token": dropped("unknown words have an id, not a name"),
    "extend": _FROM_FILES,
    "directory": kept,
    "directory_path": renamed("directory"),
    "pretrained_files": _by_namespace(_pretrained),
    "only_include_pretrained_words": only(False),
    "min_pretrained_embeddings": _by_namespace(unsupported()),
    "tokens_to_add": _by_namespace(added_words),
}


def _vocabulary(here: Place, value: Any) -> Mapping[str, Any]:
    values = {"type": value} if isinstance(value, str) else value
    ours = block(here, values, _VOCABULARY, "vocabulary")
    if _has_folder(values) and "directory" not in ours:
        here.problem("directory is missing")
    if not _counts_data(here.context):
        path = Place(here.context).at("datasets_for_vocab_creation")
        path.note("added", "[]; the vocabulary is that of the folder")
        return {"vocabulary": ours, path.key: []}
    return {"vocabulary": ours} if ours else {}


def _has_folder(values: Any) -> bool:
    """Return whether a vocabulary is read from files, alone or extended by the data."""
    return isinstance(values, dict) and bool(
        {"directory", "directory_path"} & values.keys()
        or values.get("type") in ("from_files", "extend")
    )


def _counts_data(context: Context) -> bool:
    values = context.value("vocabulary")
    is_extended = isinstance(values, dict) and (
        values.get("type") == "extend" or values.get("extend") is True
    )
    return is_extended or not _has_folder(values)


def _counted(here: Place, value: Any) -> Mapping[str, Any]:
    if _counts_data(here.context):
        return {here.key: value}
    here.note("dropped", "the vocabulary is that of the folder")
    return {}


_TOP: Rules = {
    "dataset_reader": into("dataset_reader", reader),
    "validation_dataset_reader": into("validation_dataset_reader", reader),
    "train_data_path": kept,
    "validation_data_path": kept,
    "test_data_path": kept,
    "vocabulary": _vocabulary,
    "datasets_for_vocab_creation": _counted,
    "model": into("model", model),
    "data_loader": into("data_loader", of_training(data_loader)),
    "validation_data_loader": into("validation_data_loader", of_training(data_loader)),
    "iterator": into("data_loader", of_training(iterator)),
    "validation_iterator": into("validation_data_loader", of_training(iterator)),
    "trainer": into("trainer", of_training(trainer)),
    "evaluate_on_test": kept,
    "random_seed": kept,
    "numpy_seed": _SEEDS,
    "pytorch_seed": _SEEDS,
    "distributed": distributed,
    "batch_weight_key": dropped("scores are sums over examples, whatever the batches"),
    "include_in_archive": dropped("a run has all that it needs"),
    "type": only("default"),
}
_ORDER = [key for key in _TOP if key != "type"]
