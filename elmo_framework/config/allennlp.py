"""Recognize configurations written for AllenNLP, and name the replacements of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmo_framework.config.registry import registered
from elmo_framework.config.signature import parameters
from elmo_framework.errors import ConfigError, Problem, dotted

_LOADER = "use `data_loader`: {batch_size or max_tokens, bucketing, shuffle}"
_CALLBACKS = "use `callbacks`, a list such as ['tensorboard']"
_NO_INDEXERS = "remove it: each token embedder brings its own indexer"
_ENCODER = "use `encoder`"
_ALL_METRICS = "remove it: all metrics of a task are always computed"
_ATTENTION = "remove it: the attention of each head is that of its paper"
_ELMO = "use `elmo_token_embedder` in `embedder`, as `output_embedder`, or both, not `elmo`"
_LENGTH = "remove it: it follows from the trainer's settings"
_RULES = (
    "write the list of `regexes` itself: [[regex, {type: ...}], ...]; "
    "put [regex, 'prevent'] first in place of `prevent_regexes`"
)
_MAXOUT = "add `type`: 'maxout' next to it"

_ANYWHERE = {
    "text_field_embedder": "use `embedder`: {token_embedders: {...}}",
    "token_indexers": _NO_INDEXERS,
    "source_token_indexers": _NO_INDEXERS,
    "vocab_to_cache": "remove it: `cache` stores the layers of whole sentences",
    "do_layer_norm": "use `mix`: {type: 'scalar_mix', layer_norm: true or false}",
    "vocab_namespace": "remove it: words have one vocabulary, and characters need none",
}
_TYPES = {
    "pretrained_transformer": "use 'pretrained_transformer_mismatched', which gives each word one "
    "vector",
    "stacked_bidirectional_lstm": "use 'lstm' with `bidirectional` and `dropout`, or "
    "'alternating_lstm', which has highways and `recurrent_dropout_probability`",
}
_UNDER = {
    "": {
        "iterator": _LOADER,
        "validation_iterator": "use `validation_data_loader`: {batch_size or max_tokens}",
        "distributed": "remove it: start `elmo train` with torchrun",
        "numpy_seed": "use `random_seed`, which fixes everything",
        "pytorch_seed": "use `random_seed`, which fixes everything",
        "batch_weight_key": "remove it: scores are sums over examples, whatever the batches",
        "include_in_archive": "remove it: a run directory contains all that the run needs",
    },
    "model": {
        "similarity_function": _ATTENTION,
        "matrix_attention": _ATTENTION,
        "seq2seq_encoder": _ENCODER,
        "phrase_layer": _ENCODER,
        "context_layer": _ENCODER,
        "seq2vec_encoder": "use `pooler`",
        "constrain_crf_decoding": "use `constrain_transitions`",
        "use_input_elmo": _ELMO,
        "use_integrator_output_elmo": _ELMO,
        "output_logit": "remove it: a linear layer follows `output_feedforward`",
        "mask_lstms": "remove it: padding changes nothing",
        "srl_eval_path": "remove it: the scores are those of srl-eval.pl, without Perl",
        "ignore_span_metric": _ALL_METRICS,
        "calculate_span_f1": _ALL_METRICS,
        "verbose_metrics": _ALL_METRICS,
    },
    "dataset_reader": {
        "lazy": "remove it: readers always stream",
        "convert_to_coding_scheme": "use `coding_scheme`",
        "remove_singleton_clusters": "use `remove_singletons`",
        "max_span_width": "use `max_span_width` of the `model`",
    },
    "embedding": {"num_embeddings": "remove it: the characters are the 262 of ELMo's"},
    "output_layer": {"output_dims": _MAXOUT, "pool_sizes": _MAXOUT},
    "data_loader": {"batch_sampler": _LOADER},
    "validation_data_loader": {"batch_sampler": "use {batch_size or max_tokens}"},
    "trainer": {
        "cuda_device": "use `device`: 'auto', 'cpu' or 'cuda'",
        "use_amp": "use `precision`: 'bfloat16'",
        "shuffle": "use `shuffle` of the `data_loader`",
        "num_serialized_models_to_keep": "use `checkpointer`: {keep_most_recent_by_count}",
        "model_save_interval": "use `checkpointer`: {save_every: {minutes}}",
        "tensorboard_writer": _CALLBACKS,
        "summary_interval": _CALLBACKS,
        "histogram_interval": _CALLBACKS,
        "should_log_learning_rate": _CALLBACKS,
        "should_log_parameter_statistics": _CALLBACKS,
        "enable_default_callbacks": _CALLBACKS,
        "run_confidence_checks": "remove it",
        "momentum_scheduler": "remove it: the momentum is that of the `optimizer`",
        "grad_scaling": "remove it: bfloat16 needs no scaling",
    },
    "learning_rate_scheduler": {
        "num_warmup_steps": "use `warmup_steps`",
        "num_epochs": _LENGTH,
        "num_steps_per_epoch": _LENGTH,
        "mode": "remove it: `validation_metric` of the `trainer` has the direction",
    },
    "checkpointer": {
        "num_serialized_models_to_keep": "use `keep_most_recent_by_count`",
        "save_every_num_seconds": "use `save_every`: {minutes}",
        "save_every_num_batches": "use `save_every`: {steps}",
        "save_completed_epochs": "remove it: each evaluation is saved; `save_every` adds more",
    },
    "vocabulary": {
        "directory_path": "use `directory`",
        "non_padded_namespaces": "remove it: labels have no padding",
        "type": "remove it: use `directory` or `datasets_for_vocab_creation`",
    },
    "moving_average": {"type": "remove it: the average is exponential, and `decay` its key"},
}


def refuse_allennlp_keys(
    raw: Mapping[str, Any], *, source: str, others: Sequence[Problem] = ()
) -> None:
    """Refuse a configuration that was written for AllenNLP.

    A key that the class of its block accepts is not AllenNLP's, so import plugins before.

    Args:
        raw: the configuration, as JSON types.
        source: the file of the configuration, for messages.
        others: problems to report first, if there is such a key.

    Raises:
        ConfigError: with each of AllenNLP's keys, and its replacement.
    """
    problems = [Problem(path, message) for path, message in _replacements(raw)]
    if problems:
        raise ConfigError(f"{source}, written for AllenNLP", [*others, *problems])


def _replacements(raw: object, path: str = "", parent: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted paths of AllenNLP's keys and names below `raw`, with the advice."""
    if isinstance(raw, list):
        for index, item in enumerate(raw):
            yield from _replacements(item, dotted(path, index), parent)
    if isinstance(raw, dict):
        for key, value in raw.items():
            where = dotted(path, key)
            if advice := _advice(raw, key, parent):
                yield where, f"a key of AllenNLP; {advice}"
            elif key == "type" and (advice := _TYPES.get(str(value))) and not registered(value):
                yield where, f"a name of AllenNLP; {advice}"
            yield from _replacements(value, where, key)


def _advice(block: Mapping[str, Any], key: str, parent: str) -> str | None:
    if key == "scalar_mix_parameters" and block.get("type") == "elmo_token_embedder":
        return "use `mix`: {type: 'scalar_mix', scalar_mix_parameters: [...]}"
    if key in ("options_file", "weight_file") and str(block[key]).startswith("http"):
        return "use `bilm`: 'original' or another name, or the folder of both files"
    if key in ("initializer", "regularizer") and isinstance(block[key], dict):
        return _RULES if "regexes" in block[key] else None
    if key == "num_layers" and parent == "output_layer" and "output_dims" in block:
        return "remove it: `output_dims` has a number for each layer"
    name, advice = block.get("type"), _ANYWHERE.get(key) or _UNDER.get(parent, {}).get(key)
    is_key_here = isinstance(name, str) and any(
        key in parameters(each) for each in registered(name)
    )
    return None if is_key_here else advice
