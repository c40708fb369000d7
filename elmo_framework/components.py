"""The one list of built-in modules that register components."""

from importlib import import_module

MODULES = (
    "elmo_framework.bilm.context_layers",
    "elmo_framework.bilm.layer_mix",
    "elmo_framework.bilm.token_encoder",
    "elmo_framework.data.data_loader",
    "elmo_framework.data.tokenizer",
    "elmo_framework.embedders.character_encoding",
    "elmo_framework.embedders.context2vec",
    "elmo_framework.embedders.cove",
    "elmo_framework.embedders.elmo",
    "elmo_framework.embedders.embedding",
    "elmo_framework.encoders.encoder",
    "elmo_framework.encoders.feedforward",
    "elmo_framework.encoders.lstm",
    "elmo_framework.encoders.pooler",
    "elmo_framework.metrics.accuracy",
    "elmo_framework.metrics.confusion",
    "elmo_framework.metrics.coreference",
    "elmo_framework.metrics.span_f1",
    "elmo_framework.metrics.squad",
    "elmo_framework.metrics.srl",
    "elmo_framework.model.initializer",
    "elmo_framework.model.regularizer",
    "elmo_framework.study.distribution",
    "elmo_framework.study.fixed_search",
    "elmo_framework.study.local_executor",
    "elmo_framework.study.optuna_search",
    "elmo_framework.study.slurm_executor",
    "elmo_framework.tasks.classification.basic_classifier",
    "elmo_framework.tasks.classification.bcn",
    "elmo_framework.tasks.classification.reader",
    "elmo_framework.tasks.classification.sst_reader",
    "elmo_framework.tasks.coreference.reader",
    "elmo_framework.tasks.coreference.span_ranker",
    "elmo_framework.tasks.entailment.esim",
    "elmo_framework.tasks.entailment.reader",
    "elmo_framework.tasks.language_modeling.bi_language_model",
    "elmo_framework.tasks.language_modeling.reader",
    "elmo_framework.tasks.language_modeling.windows",
    "elmo_framework.tasks.question_answering.bidaf",
    "elmo_framework.tasks.question_answering.reader",
    "elmo_framework.tasks.srl.conllu_plus",
    "elmo_framework.tasks.srl.reader",
    "elmo_framework.tasks.srl.semantic_role_labeler",
    "elmo_framework.tasks.tagging.line_readers",
    "elmo_framework.tasks.tagging.reader",
    "elmo_framework.tasks.tagging.table_reader",
    "elmo_framework.tasks.tagging.tagger",
    "elmo_framework.training.callback",
    "elmo_framework.training.optimizer",
    "elmo_framework.training.options",
    "elmo_framework.training.schedule",
)


def load() -> None:
    """Import every built-in module that registers components."""
    for module in MODULES:
        import_module(module)
