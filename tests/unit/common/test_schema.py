import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from elmo_framework.common.build import check
from elmo_framework.common.component import Component
from elmo_framework.common.schema import schema
from tests.damage import damaged
from tests.unit.common.example import (
    FILLED,
    SOURCE,
    DataLoader,
    Embedding,
    Encoder,
    Experiment,
    Model,
    TrainerOptions,
    flat,
    tagger,
)


def refused(family: type[Component], raw: object) -> bool:
    return bool(check(family, raw, source=SOURCE).problems)


VALID: list[tuple[type[Component], Any]] = [
    (Experiment, flat()),
    (Experiment, FILLED),
    (Experiment, flat(data_loader="batches", trainer={"callbacks": ["console"]})),
    (Model, tagger(pair=[1, 2], layers=[0], output_embedder=None)),
    (DataLoader, {}),
    (DataLoader, {"type": "batches"}),
    (Encoder, "pass_through"),
    (Encoder, {"type": "compose", "encoders": [{"type": "compose", "encoders": []}]}),
    (TrainerOptions, {"warmup": {"steps": 3}, "by_group": {"a": ["console"]}}),
]
INVALID: list[tuple[type[Component], Any]] = [
    (Experiment, flat(sed=1)),
    (Experiment, flat(model=tagger(vocabularies={}))),
    (Experiment, flat(train_data_path=None)),
    (Model, tagger(pair=[1])),
    (Model, tagger(layers="top")),
    (DataLoader, {"type": "windows"}),
    (DataLoader, "windows"),
    (DataLoader, {"type": "other"}),
    (Encoder, {}),
    (Encoder, {"type": "lstm", "hidden_size": 0}),
    (Encoder, {"type": "lstm", "hidden_size": 2, "input_dim": 3}),
    (Encoder, {"type": "compose", "encoders": [{"type": "compose", "encoders": [3]}]}),
    (TrainerOptions, {"warmup": {"steps": 3, "stop": 1}}),
]


@pytest.mark.parametrize(("family", "raw"), VALID + INVALID)
def test_the_schema_accepts_what_parse_accepts(family: type[Component], raw: Any) -> None:
    written = schema(family)
    Draft202012Validator.check_schema(written)
    is_invalid = not Draft202012Validator(written).is_valid(raw)
    assert is_invalid == refused(family, raw) == ((family, raw) in INVALID)


def test_a_schema_names_the_defaults_and_the_meaning_of_keys() -> None:
    definitions = schema(Embedding)["$defs"]
    (member,) = definitions["tests.unit.common.example.Embedding"]["oneOf"]
    assert member["required"] == ["embedding_dim"]
    assert member["properties"]["type"] == {"const": "embedding"}
    assert member["properties"]["embedding_dim"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "description": "width of a vector, for each word.",
    }
    assert "vocabularies" not in member["properties"]


WHOLE = flat(
    model=tagger(
        encoder={
            "type": "compose",
            "encoders": ["pass_through", {"type": "lstm", "hidden_size": 2}],
        },
        pair=[1, 2],
        layers=[0, 1],
        output_embedder={"type": "elmo_token_embedder", "bilm": "runs/bilm", "mix": "scalar_mix"},
    ),
    trainer={"warmup": {"steps": 3}, "callbacks": ["console"], "by_group": {"a": ["console"]}},
)


@pytest.mark.parametrize("raw", [flat(), FILLED, WHOLE], ids=["flat", "filled", "whole"])
def test_the_schema_and_parse_judge_damage_alike(raw: dict[str, Any]) -> None:
    validator = Draft202012Validator(schema(Experiment))
    chance = random.Random(13)
    assert validator.is_valid(raw)
    tried = [damaged(raw, chance) for _ in range(300)]
    judged = [(each, refused(Experiment, each), validator.is_valid(each)) for each in tried]
    assert [each for each, is_refused, is_valid in judged if is_refused == is_valid] == []
    assert 20 < sum(is_refused for _, is_refused, _ in judged) < 290
