import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.config import registry
from elmo_framework.config.registry import members
from elmo_framework.data.tokenizer import Tokenizer

CONFIG = {
    "dataset_reader": "conll2003",
    "train_data_path": "train.txt",
    "model": {
        "type": "crf_tagger",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 50}}},
        "encoder": {"type": "lstm", "hidden_size": 20},
    },
}


def test_the_schema_judges_configs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    written = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(written)
    validator = Draft202012Validator(written)
    assert written["title"] == "Experiment"
    assert validator.is_valid(CONFIG)
    assert not validator.is_valid(CONFIG | {"train_data_path": ""})
    assert not validator.is_valid(CONFIG | {"sed": 1})


def test_folder_as_schema_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", "--output-file", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: Is a directory\n"


def test_the_schema_is_written_to_a_file_and_holds_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    components.load()
    known = registry._members.copy()
    known[Tokenizer] = members(Tokenizer)
    monkeypatch.setattr(registry, "_members", known)
    Path("plugin_of_schema_test.py").write_text(
        "from elmo_framework.data.tokenizer import Tokenizer, WhitespaceTokenizer\n"
        "class Plugged(Tokenizer):\n"
        "    sentences = WhitespaceTokenizer.sentences\n"
        "    words = WhitespaceTokenizer.words\n"
        "    def __init__(self) -> None: ...\n"
        "Tokenizer.register('plugged_in_schema_test')(Plugged)\n"
    )
    plugin = ["--include-package", "plugin_of_schema_test"]
    assert main(["schema", "--output-file", "schema.json", *plugin]) == 0
    assert capsys.readouterr().out == ""
    assert "plugged_in_schema_test" in Path("schema.json").read_text()
