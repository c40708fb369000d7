import json
from importlib import import_module

import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.registry import members
from elmo_framework.data import DatasetReader


def described(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["describe", *arguments]) == 0
    return capsys.readouterr().out


def test_all_families_are_listed_with_their_members(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described(capsys=capsys).splitlines()
    assert "experiment: One job: data, a model, and how it is trained." in lines
    assert "token_embedder: Gives each word of a batch a vector." in lines
    assert any(line.startswith("  elmo_token_embedder  ") for line in lines)
    assert any(line.startswith("  adam ") and line.endswith(" (default)") for line in lines)


def test_the_members_of_a_family_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads(described("Encoder", "--format", "json", capsys=capsys))
    assert written["default"] is None
    assert {"lstm", "gru", "pass_through"} <= written["members"].keys()
    assert all(written["members"].values())


def test_the_keys_of_a_member_are_shown_with_their_meaning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = described("encoder", "lstm", capsys=capsys)
    lines = shown.splitlines()
    row = ["hidden_size", "int", ">", "0,", "<=", "65,536", "required"]
    assert any(line.split()[:7] == row for line in lines)
    assert "supplied by the framework, never by a config:\n  input_dim: " in shown
    assert "class: elmo_framework.encoders.lstm.LstmEncoder" in lines


def test_keys_of_the_configs_of_a_study_have_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads(described("study", "--format", "json", capsys=capsys))
    keys = [row["key"] for row in written["keys"]]
    assert keys[:3] == ["configs", "configs.NAME.config", "configs.NAME.variants"]


def test_registered_function_is_shown_as_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described("optimizer", "adam", capsys=capsys).splitlines()
    assert "function: elmo_framework.training.optimizer.adam" in lines
    assert any(line.split()[-2:] == ["learning", "rate."] for line in lines)


def test_examples_of_readers_and_models_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = described("dataset_reader", "conll2003", capsys=capsys).splitlines()
    assert "examples: TaggedSentence (elmo_framework.tasks.tagging)" in lines
    written = json.loads(described("model", "esim", "--format", "json", capsys=capsys))
    assert written["examples"] == "elmo_framework.tasks.entailment.SentencePair"
    assert "examples" not in described("encoder", "lstm", "--format", "json", capsys=capsys)
    for name in members(DatasetReader):
        written = json.loads(described("dataset_reader", name, "--format", "json", capsys=capsys))
        package, _, cls = written["examples"].rpartition(".")
        assert cls in dir(import_module(package))


def test_a_key_and_a_name_of_one_family_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert described("trainer", capsys=capsys) == described("trainer_options", capsys=capsys)
    tagger = described("model", "crf_tagger", capsys=capsys)
    assert described("crf_tagger", capsys=capsys) == tagger
    assert main(["describe", "lstm"]) == 2
    assert "Did you mean 'encoder lstm' or 'pooler lstm'?" in capsys.readouterr().err


def test_class_without_members_shows_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads(described("experiment", "--format", "json", capsys=capsys))
    keys = {row["key"]: row for row in written["keys"]}
    assert keys["train_data_path"]["type"] == "Path"
    assert keys["random_seed"]["default"] == "13370"
    assert all(row["text"] for row in written["keys"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["encodr"], "error: unknown component family 'encodr'; choose from "),
        (["lstn"], "error: unknown component family 'lstn'; choose from "),
        (["encoder", "lstn"], "error: unknown encoder 'lstn'; choose from "),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", *arguments]) == 2
    found = capsys.readouterr().err
    assert found.startswith(said)
    assert "Did you mean '" in found
    assert "For a plugin, pass --include-package\n" in found


def test_family_is_found_by_its_former_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert described("observer", capsys=capsys) == described("callback", capsys=capsys)
    assert "summary_interval" in described("observer", "tensorboard", capsys=capsys)
