import json
import logging
from typing import Any

import pytest

from elmo_framework.config.overrides import with_overrides
from elmo_framework.errors import ConfigError

RAW: dict[str, Any] = {
    "model": {"type": "crf_tagger", "encoder": "lstm", "dropout": 0.5},
    "trainer": {"num_epochs": 3, "callbacks": [{"type": "console"}, "tensorboard"]},
    "random_seed": 1,
}


def changed(*overrides: str) -> dict[str, Any]:
    return with_overrides(RAW, overrides, source="ner.jsonnet", evaluate=json.loads)


def override_error(*overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        changed(*overrides)
    assert caught.value.source == "ner.jsonnet with --overrides"
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("5.0", 5.0),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('"5"', "5"),
        ("data/a=b.txt", "data/a=b.txt"),
        ("", ""),
        ("NaN", "NaN"),
        ("1e400", "1e400"),
        ("True", "True"),
    ],
)
def test_a_value_is_json_or_else_a_string(text: str, value: object) -> None:
    found = changed(f"random_seed={text}")["random_seed"]
    assert (found, type(found)) == (value, type(value))


def test_dotted_key_changes_only_one_value() -> None:
    assert changed("model.dropout=0.1")["model"] == RAW["model"] | {"dropout": 0.1}


@pytest.mark.parametrize("key", ["trainer.callbacks.0.type", "trainer.callbacks[0].type"])
def test_items_of_lists_are_numbered_from_0(key: str) -> None:
    assert changed(f"{key}=other")["trainer"]["callbacks"] == [{"type": "other"}, "tensorboard"]


def test_key_below_a_component_name_creates_an_object() -> None:
    made = changed("model.encoder.num_layers=2", "model.encoder.dropout=0.1")
    assert made["model"]["encoder"] == {"type": "lstm", "num_layers": 2, "dropout": 0.1}
    callbacks = changed("trainer.callbacks[1].every=2")["trainer"]["callbacks"]
    assert callbacks[1] == {"type": "tensorboard", "every": 2}


def test_a_whole_item_of_a_list_is_replaced() -> None:
    assert changed("trainer.callbacks[1]=x")["trainer"]["callbacks"][1] == "x"


def test_a_last_key_that_is_not_there_is_added() -> None:
    assert changed("model.new=1", "top=2") == RAW | {"model": RAW["model"] | {"new": 1}, "top": 2}


def test_overrides_accumulate_in_order() -> None:
    made = changed('model.encoder={"type": "gru"}', "model.encoder.num_layers=2", '{"a": 1}', "a=2")
    assert made["model"]["encoder"] == {"type": "gru", "num_layers": 2}
    assert made["a"] == 2


def test_the_keys_of_an_object_may_be_dotted() -> None:
    made = changed('{"model.dropout": 0, "trainer.callbacks.1": "x"}')
    assert (made["model"]["dropout"], made["trainer"]["callbacks"][1]) == (0, "x")


def test_overrides_do_not_modify_the_original_config() -> None:
    before = json.dumps(RAW)
    changed("trainer.callbacks[0].type=other")
    assert json.dumps(RAW) == before


def test_an_object_override_replaces_all_and_warns_of_lost_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        made = changed('{"model": {"type": "simple_tagger"}}')
    assert made["model"] == {"type": "simple_tagger"}
    assert caplog.messages == [
        "--overrides: replacing model drops dropout, encoder; use dotted keys to change single keys"
    ]


def test_an_object_that_loses_nothing_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    changed(json.dumps({"model": RAW["model"] | {"more": 1}}), 'new={"a": 1}', "model.encoder={}")
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "trainr.num_epochs=5",
            "trainr.num_epochs: the configuration has no key 'trainr'; choose from model, "
            "random_seed, trainer. Did you mean 'trainer'? To add it, pass a whole object: "
            "trainr={...}",
        ),
        (
            "encoder.num_layers=1",
            "encoder.num_layers: the configuration has no key 'encoder'; choose from model, "
            "random_seed, trainer. Did you mean 'model.encoder.num_layers'?",
        ),
        (
            "model.mix.l2=1",
            "model.mix.l2: model has no key 'mix'; choose from dropout, encoder, type. "
            "To add it, pass a whole object: model.mix={...}",
        ),
        (
            "trainer.callbacks[2]=x",
            "trainer.callbacks[2]: trainer.callbacks is a list of 2 items, numbered from 0; "
            "no item '2'",
        ),
        (
            "trainer.callbacks.first=x",
            "trainer.callbacks.first: trainer.callbacks is a list of 2 items, numbered from 0; "
            "no item 'first'",
        ),
        (
            "model.dropout.rate=2",
            "model.dropout.rate: model.dropout is 0.5, which has no keys",
        ),
        ("model", "model: is neither dotted.key=VALUE nor an object {...}"),
        ('["model"]', '["model"]: is neither dotted.key=VALUE nor an object {...}'),
        (f"model={'[' * 100_000}", "model: has more than 100 brackets inside each other"),
        (f"model={'[' * 101}{']' * 101}", "model: has more than 100 brackets inside each other"),
        ("model=a\udcff", r"'model=a\udcff': is not UTF-8"),
        ("a..b=1", "a..b: not a dotted key such as trainer.num_epochs or callbacks[0].type"),
        ("=1", "(top level): not a dotted key such as trainer.num_epochs or callbacks[0].type"),
    ],
)
def test_an_override_that_touches_nothing_is_an_error(override: str, said: str) -> None:
    assert override_error(override) == [said]


def test_all_bad_overrides_are_reported_at_once() -> None:
    found = override_error("trainr.x=1", "nonsense", "random_seed=2", '{"a.b": 1, "model.x.y": 2}')
    assert [line.partition(":")[0] for line in found] == [
        "trainr.x",
        "nonsense",
        "a.b",
        "model.x.y",
    ]
