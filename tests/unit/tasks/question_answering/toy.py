"""Small models of both kinds on a few questions of the fixture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.tokenizer import SpacyTokenizer
from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.model.model import Model
from elmo_framework.tasks.question_answering.answer_head import AnswerHead
from elmo_framework.tasks.question_answering.example import PassageQuestion, QuestionBatch
from elmo_framework.tasks.question_answering.reader import SquadReader
from elmo_framework.tasks.question_answering.task import QuestionAnsweringTask

FIXTURE = Path(__file__).parents[3] / "fixtures" / "squad" / "train.json"
EXAMPLES = list(SquadReader(SpacyTokenizer()).read(FIXTURE))
COUNTS = Vocabularies(QuestionAnsweringTask().count(EXAMPLES))
WORDS = {"type": "embedding", "embedding_dim": 8}
GRU = {"type": "gru", "hidden_size": 5, "bidirectional": True}
LSTM = {"type": "lstm", "hidden_size": 5, "bidirectional": True}
SHARED = {"embedder": {"token_embedders": {"tokens": WORDS}}, "dropout": 0.0}
CONFIGS: dict[str, dict[str, Any]] = {
    "bidaf": {
        **SHARED,
        "type": "bidaf",
        "encoder": LSTM,
        "modeling_layer": {**LSTM, "num_layers": 2},
        "span_end_encoder": LSTM,
    },
    "bidaf_self_attention": {
        **SHARED,
        "type": "bidaf_self_attention",
        "encoder": GRU,
        "residual_encoder": GRU,
        "span_start_encoder": GRU,
        "span_end_encoder": GRU,
        "projection_dim": 6,
    },
}


def head(kind: str, **options: Any) -> AnswerHead:
    torch.manual_seed(1)
    lazy = parse(Model, {**CONFIGS[kind], **options}, source="a.jsonnet")
    built = lazy.build(vocabularies=COUNTS)
    assert isinstance(built, AnswerHead)
    return built


def batch_of(model: AnswerHead, examples: Sequence[PassageQuestion] = EXAMPLES) -> QuestionBatch:
    batch = model.task.collator(COUNTS, model.indexers)(examples)
    assert isinstance(batch, QuestionBatch)
    return batch
