import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from elmo_framework.config.docstrings import explanation, summary
from elmo_framework.config.introspect import (
    KeyRow,
    describe,
    find_family,
    find_member,
    schema,
    supplied,
)
from elmo_framework.config.parse import check
from elmo_framework.config.types import Component
from elmo_framework.errors import ElmoFrameworkError
from tests.fault_injection import damaged
from tests.unit.config.example import (
    FILLED,
    SOURCE,
    DataLoader,
    Embedding,
    Encoder,
    GradientDescent,
    LstmEncoder,
    Model,
    Schedule,
    Study,
    TokenEmbedder,
    TrainerOptions,
    flat,
    linear,
    tagger,
)


def test_a_component_is_described_by_a_row_for_each_key() -> None:
    assert describe(Embedding) == [
        KeyRow("embedding_dim", "int > 0", "required", "width of a vector, for each word."),
        KeyRow("pretrained_file", "Path | None", "null", "vectors to start from."),
    ]


def test_the_options_of_a_component_are_described_below_it() -> None:
    assert describe(GradientDescent) == [
        KeyRow("optimizer", "Optimizer", '"adam"', ""),
        KeyRow("warmup", "Warmup", '{"steps": 0}', ""),
        KeyRow("warmup.steps", "int", "required", "how many updates it takes."),
        KeyRow("warmup.start", "float", "0.0", ""),
        KeyRow("callbacks", "list[Watcher]", "[]", ""),
        KeyRow("by_group", "dict[str, list[Watcher]] | None", "null", ""),
        KeyRow("num_epochs", "int", "20", ""),
        KeyRow("grad_norm", "float | None", "null", ""),
    ]


def test_registered_function_is_described_by_its_docstring() -> None:
    assert find_member(Schedule, "linear") is linear
    assert (summary(linear), explanation(linear)) == (
        "Falls linearly.",
        "Falls linearly.\n\nDown to the end.",
    )
    assert supplied(linear) == {"directory": "of the run."}
    assert describe(linear) == [
        KeyRow("num_steps", "int > 0", "required", "how many steps it takes."),
        KeyRow("end", "float", "0.0", "the last factor."),
    ]


@pytest.mark.parametrize("name", ["token_embedder", "TokenEmbedder"])
def test_a_family_is_found_by_its_name_in_either_form(name: str) -> None:
    assert find_family(name).__name__ == TokenEmbedder.__name__


def test_an_unknown_family_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        ElmoFrameworkError, match=r"^unknown component family 'Encodr'; .* Did you mean 'encod"
    ):
        find_family("Encodr")
    with pytest.raises(ElmoFrameworkError, match="Did you mean 'token_embedder elmo_token_emb"):
        find_family("elmo_token_embeder")


def test_a_member_is_found_by_its_name() -> None:
    assert find_member(Encoder, "lstm") is LstmEncoder
    with pytest.raises(
        ElmoFrameworkError, match=r"^unknown encoder 'lstn'; .* Did you mean 'lstm'\? For a plugin"
    ):
        find_member(Encoder, "lstn")


def test_supplied_parameters_are_listed_separately() -> None:
    assert supplied(Embedding) == {"vocabularies": "the words.", "device": ""}


def refused(family: type[Component], raw: object) -> bool:
    return bool(check(family, raw, source=SOURCE).problems)


VALID: list[tuple[type[Component], Any]] = [
    (Study, flat()),
    (Study, FILLED),
    (Study, flat(data_loader="batches", trainer={"callbacks": ["console"]})),
    (Model, tagger(pair=[1, 2], layers=[0], output_embedder=None)),
    (DataLoader, {}),
    (DataLoader, {"type": "batches"}),
    (Encoder, "pass_through"),
    (Encoder, {"type": "compose", "encoders": [{"type": "compose", "encoders": []}]}),
    (TrainerOptions, {"warmup": {"steps": 3}, "by_group": {"a": ["console"]}}),
]
INVALID: list[tuple[type[Component], Any]] = [
    (Study, flat(sed=1)),
    (Study, flat(model=tagger(vocabularies={}))),
    (Study, flat(train_data_path=None)),
    (Model, tagger(pair=[1])),
    (Model, tagger(layers="top")),
    (DataLoader, {"type": "windows"}),
    (DataLoader, "windows"),
    (DataLoader, {"type": "other"}),
    (Encoder, {}),
    (Schedule, "linear"),
    (Encoder, {"type": "lstm", "hidden_size": 0}),
    (Encoder, {"type": "lstm", "hidden_size": 2, "input_dim": 3}),
    (Encoder, {"type": "compose", "encoders": [{"type": "compose", "encoders": [3]}]}),
    (TrainerOptions, {"warmup": {"steps": 3, "stop": 1}}),
]


@pytest.mark.parametrize(("family", "raw"), VALID + INVALID)
def test_schema_and_parse_accept_the_same_configs(family: type[Component], raw: Any) -> None:
    written = schema(family)
    Draft202012Validator.check_schema(written)
    is_invalid = not Draft202012Validator(written).is_valid(raw)
    assert is_invalid == refused(family, raw) == ((family, raw) in INVALID)


def test_a_schema_names_the_defaults_and_the_meaning_of_keys() -> None:
    definitions = schema(Embedding)["$defs"]
    (member,) = definitions["tests.unit.config.example.Embedding"]["oneOf"]
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
    validator = Draft202012Validator(schema(Study))
    chance = random.Random(13)
    assert validator.is_valid(raw)
    tried = [damaged(raw, chance) for _ in range(300)]
    judged = [(each, refused(Study, each), validator.is_valid(each)) for each in tried]
    assert [each for each, is_refused, is_valid in judged if is_refused == is_valid] == []
    assert 20 < sum(is_refused for _, is_refused, _ in judged) < 290
