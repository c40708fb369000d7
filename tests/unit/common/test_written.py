from typing import Any

import pytest
from jsonschema import Draft202012Validator

from elmo_framework.common.build import parse
from elmo_framework.common.component import Component
from elmo_framework.common.describe import Row, describe
from elmo_framework.common.errors import ConfigError
from elmo_framework.common.filled import filled
from elmo_framework.common.schema import schema
from tests.unit.common.example import (
    SOURCE,
    DataLoader,
    Embedding,
    Encoder,
    Experiment,
    GradientDescent,
    Model,
    TrainerOptions,
    flat,
    tagger,
)

FILLED: dict[str, Any] = {
    "dataset_reader": {"type": "conll2003", "tag_label": "ner", "coding_scheme": "BIOUL"},
    "train_data_path": "data/train.txt",
    "model": {
        "type": "crf_tagger",
        "embedder": {
            "token_embedders": {
                "elmo": {
                    "type": "elmo_token_embedder",
                    "bilm": "runs/bilm",
                    "mix": {"type": "scalar_mix", "l2": 0.0},
                    "dropout": 0.5,
                },
                "tokens": {"type": "embedding", "embedding_dim": 50, "pretrained_file": None},
            }
        },
        "encoder": {"type": "lstm", "hidden_size": 200, "num_layers": 1, "bidirectional": True},
        "output_embedder": None,
        "dropout": 0.0,
        "pair": None,
        "layers": -1,
    },
    "data_loader": {"type": "batches", "batch_size": 8},
    "trainer": {
        "type": "gradient_descent",
        "optimizer": {"type": "adam", "lr": 0.01},
        "warmup": {"steps": 0, "start": 0.0},
        "callbacks": [],
        "by_group": None,
        "num_epochs": 20,
        "grad_norm": 5.0,
    },
    "validation_data_path": "data/valid.txt",
    "test_data_path": None,
    "validation_dataset_reader": None,
    "random_seed": 13370,
}


def refused(family: type[Component], raw: object) -> bool:
    try:
        parse(family, raw, source=SOURCE)
    except ConfigError:
        return True
    return False


def test_a_filled_config_has_every_default() -> None:
    assert filled(parse(Experiment, flat(), source=SOURCE)) == FILLED


def test_a_filled_config_says_the_same_again() -> None:
    assert filled(parse(Experiment, FILLED, source=SOURCE)) == FILLED


def test_nested_values_are_written_as_json() -> None:
    raw = tagger(pair=[1, 2], layers=[0], encoder={"type": "compose", "encoders": ["lstm"]})
    raw["encoder"]["encoders"] = [{"type": "lstm", "hidden_size": 2}]
    written = filled(parse(Model, raw, source=SOURCE))
    assert (written["pair"], written["layers"]) == ([1, 2], [0])
    assert written["encoder"]["encoders"][0]["num_layers"] == 1


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


def test_a_component_is_described_by_a_row_for_each_key() -> None:
    assert describe(Embedding) == [
        Row("embedding_dim", "int > 0", "required", "width of a vector, for each word."),
        Row("pretrained_file", "Path | None", "null", "vectors to start from."),
    ]


def test_the_options_of_a_component_are_described_below_it() -> None:
    assert describe(GradientDescent) == [
        Row("optimizer", "Optimizer", '"adam"', ""),
        Row("warmup", "Warmup", '{"steps": 0}', ""),
        Row("warmup.steps", "int", "required", "how many updates it takes."),
        Row("warmup.start", "float", "0.0", ""),
        Row("callbacks", "list[Observer]", "[]", ""),
        Row("by_group", "dict[str, list[Observer]] | None", "null", ""),
        Row("num_epochs", "int", "20", ""),
        Row("grad_norm", "float | None", "null", ""),
    ]
