import json
import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.config.load import Config, with_overrides
from elmo_framework.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.jsonnet"


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Config.load(path)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_jsonnet_is_evaluated_with_imports_relative_to_the_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "sizes.libsonnet").write_text("{ small: 128 }")
    text = "local sizes = import 'lib/sizes.libsonnet'; { model: { hidden_size: sizes.small } }"
    file.write_text(text)
    config = Config.load(file)
    assert config.raw == {"model": {"hidden_size": 128}}
    assert (config.source, config.text) == (str(file), text)
    assert config.files == (file, tmp_path / "lib" / "sizes.libsonnet")


def test_a_missing_import_is_named_with_its_place(file: Path) -> None:
    file.write_text("{\n  a: import 'nowhere.libsonnet' }")
    refused = refusal(file)
    assert 'couldn\'t open import "nowhere.libsonnet": No such file or directory' in refused
    assert f"{file}:2:6" in refused


def test_plain_json_is_a_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"a": [1, 0.5, None, "é"]}), encoding="utf-8")
    assert Config.load(path).raw == {"a": [1, 0.5, None, "é"]}


def test_external_variables_come_before_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA", "from the environment")
    monkeypatch.setenv("OTHER", "other")
    monkeypatch.setenv("NOT_UTF8", "\udcff")
    file.write_text("{ data: std.extVar('DATA'), other: std.extVar('OTHER') }")
    config = Config.load(file, external_variables={"DATA": "given"})
    assert config.raw == {"data": "given", "other": "other"}


def test_overrides_are_applied_and_may_be_jsonnet(file: Path) -> None:
    file.write_text("{ trainer: { num_epochs: 3, patience: 2 } }")
    overrides = ["trainer.num_epochs=5", "{'trainer.patience': 2 + std.parseInt(std.extVar('N'))}"]
    config = Config.load(file, overrides=overrides, external_variables={"N": "5"})
    assert config.raw == {"trainer": {"num_epochs": 5, "patience": 7}}


def test_a_jsonnet_error_names_file_line_and_column(file: Path) -> None:
    file.write_text("{\n  a: 1,\n  a: 2\n}")
    assert refusal(file) == f"{file}: STATIC ERROR: {file}:3:3: duplicate field: a"


def test_unset_variable_error_shows_the_flag(file: Path) -> None:
    file.write_text("{ a: std.extVar('NO_SUCH_VARIABLE') }")
    first = refusal(file).splitlines()[0]
    assert first == (
        f"{file}: RUNTIME ERROR: undefined external variable: NO_SUCH_VARIABLE; "
        "set it in the environment or by --ext-var NO_SUCH_VARIABLE=VALUE"
    )


def test_a_long_stack_of_jsonnet_is_cut(file: Path) -> None:
    file.write_text("local f(x) = f(x + 1); { a: f(1) }")
    lines = refusal(file).splitlines()
    assert "max stack frames exceeded" in lines[0]
    assert len(lines) == 21
    assert lines[-1].endswith("more lines)")


@pytest.mark.parametrize("text", ["[1]", "3", "null"])
def test_the_top_is_an_object(file: Path, text: str) -> None:
    file.write_text(text)
    assert refusal(file).startswith(f"{file}: expected an object, not ")


def test_missing_file_error_names_the_working_directory(tmp_path: Path) -> None:
    path = tmp_path / "no.jsonnet"
    assert refusal(path) == f"{path}: file not found (in {Path.cwd()})"


def test_folder_as_config_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: is a folder; pass a .jsonnet or .json file"


def test_path_below_a_file_as_config_is_refused(file: Path) -> None:
    file.write_text("{}")
    assert refusal(file / "inner.jsonnet") == f"{file}/inner.jsonnet: Not a directory"


def test_bytes_that_are_not_utf8_are_named_with_their_line(file: Path) -> None:
    file.write_bytes(b"{\n a: '\xff' }")
    assert refusal(file) == f"{file}:2: is not UTF-8: byte 0xff"


def test_null_character_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.jsonnet"
    path.write_bytes(b"{\n a: 1,\0\n}")
    with pytest.raises(ConfigError, match=r"config\.jsonnet:2: is not text: it contains a null"):
        Config.load(path)


def test_an_override_in_bad_jsonnet_names_the_place(file: Path) -> None:
    file.write_text("{}")
    with pytest.raises(ConfigError, match=r"--overrides:1:7: "):
        Config.load(file, overrides=["{'a': }"])


def test_plugins_are_names(file: Path) -> None:
    file.write_text("{ plugins: ['one', 'two'] }")
    assert Config.load(file).plugins == ["one", "two"]
    file.write_text("{}")
    assert Config.load(file).plugins == []
    file.write_text("{ plugins: 'one' }")
    with pytest.raises(ConfigError, match=r"plugins: expected a list of module names, not 'o"):
        _ = Config.load(file).plugins


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
