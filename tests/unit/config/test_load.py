import json
from pathlib import Path

import pytest

from elmo_framework.config.load import Config
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


def test_data_in_place_of_a_config_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\nA fine film.,good\n")
    assert refusal(path).endswith("; if this is data, `elmo new` writes a config for it")


def test_unset_variable_error_shows_the_flag(file: Path) -> None:
    file.write_text("{ a: std.extVar('NO_SUCH_VARIABLE') }")
    first = refusal(file).splitlines()[0]
    assert first == (
        f"{file}: RUNTIME ERROR: undefined external variable: NO_SUCH_VARIABLE; "
        "set it in the environment or by --ext-var NO_SUCH_VARIABLE=VALUE"
    )


def test_all_unset_variables_are_listed(file: Path) -> None:
    file.write_text("{ a: std.extVar('NO_A'), b: [std.extVar('NO_B')], c: std.extVar('NO_A') }")
    lines = refusal(file).splitlines()
    assert "undefined external variable: NO_A; set it" in lines[0]
    assert lines[-1] == "    also undefined: NO_B"
    # With a value in its place the rest may not be evaluated.
    file.write_text("{ a: std.parseInt(std.extVar('NO_A')), b: std.extVar('NO_B') }")
    assert "NO_B" not in refusal(file)


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


@pytest.mark.parametrize("keyword", ["import", "importstr"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"'a' +\n'\xff'", ":2: is not UTF-8: byte 0xff"),
        (b"'a' +\n'\0'", ":2: is not text: it contains a null character"),
    ],
)
def test_an_imported_file_is_text(
    file: Path, tmp_path: Path, keyword: str, content: bytes, problem: str
) -> None:
    (tmp_path / "other.txt").write_bytes(content)
    file.write_text(f"{{ a: {keyword} 'other.txt' }}")
    assert f"{tmp_path / 'other.txt'}{problem}" in refusal(file)


def test_a_byte_order_mark_is_skipped(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other.libsonnet").write_text("1", encoding="utf-8-sig")
    file.write_text("{ a: import 'other.libsonnet' }", encoding="utf-8-sig")
    config = Config.load(file)
    assert (config.raw, config.text[0]) == ({"a": 1}, "{")


def test_a_given_variable_that_is_not_utf8_is_named(file: Path) -> None:
    file.write_text("{ a: std.extVar('A') }")
    with pytest.raises(ConfigError, match="external variable 'A' is not UTF-8"):
        Config.load(file, external_variables={"A": "\udcff"})


def test_an_override_in_jsonnet_is_an_object(file: Path) -> None:
    file.write_text("{}")
    with pytest.raises(ConfigError, match="expected an object, not 1"):
        Config.load(file, overrides=["{a: 1}.a"])


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
