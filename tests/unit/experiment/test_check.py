import json
import sys
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.errors import DataError
from elmo_framework.experiment.check import CheckResult, check_config
from elmo_framework.experiment.experiment import Experiment

components.load()
LSTM: dict[str, Any] = {"type": "lstm", "hidden_size": 3}
WRONG_SIZE = {"model.encoder.input_size": 9}
SIZE_PATH = "model.encoder.input_size"


def elmo(bilm: str) -> dict[str, Any]:
    return {"token_embedders": {"elmo": {"type": "elmo_token_embedder", "bilm": bilm}}}


BROKEN: list[tuple[dict[str, Any], list[str]]] = [
    ({"train_data_path": "none.txt", **WRONG_SIZE}, ["train_data_path", SIZE_PATH]),
    ({"sed": 1, **WRONG_SIZE}, ["sed", SIZE_PATH]),
    ({"trainer.patience": "many", **WRONG_SIZE}, ["trainer.patience", SIZE_PATH]),
    ({"dataset_reader": "conll2004", **WRONG_SIZE}, ["dataset_reader.type", SIZE_PATH]),
    ({"dataset_reader": "sst", **WRONG_SIZE}, ["dataset_reader.type", SIZE_PATH]),
    ({"trainer.no_grad": ["^nothing"], **WRONG_SIZE}, [SIZE_PATH, "trainer.no_grad[0]"]),
    (
        {"trainer.validation_metric": "+f2", "trainer.no_grad": ["^nothing"]},
        ["trainer.no_grad[0]", "trainer.validation_metric"],
    ),
    (
        {"model.encoder": {"type": "compose", "encoders": [{**LSTM, "input_size": 2}] * 2}},
        ["model.encoder.encoders[0].input_size", "model.encoder.encoders[1].input_size"],
    ),
    (
        {"model.encoder.hiden_size": 3, "validation_data_path": "none.txt"},
        ["model.encoder.hiden_size", "validation_data_path"],
    ),
    (
        {"vocabulary": {"min_count": {"tokens": 2}}, "model.embedder": 3, "train_data_path": "no"},
        ["model.embedder", "train_data_path", "vocabulary.min_count.tokens"],
    ),
    (
        {"model.embedder": elmo("empty"), "validation_data_path": "none.txt"},
        ["validation_data_path", "model.embedder.token_embedders.elmo"],
    ),
    (
        {"model.metrics": ["mcc", "squad", {"type": "top_accuracy", "top_k": 2}, "mmc"]},
        ["model.metrics[3].type", "model.metrics[1]", "model.metrics[2]"],
    ),
    (
        {"model.metrics": ["mcc", "categorical_accuracy", "mcc"], **WRONG_SIZE},
        [SIZE_PATH, "model.metrics[1]", "model.metrics[2]"],
    ),
    ({"model.embedder": elmo("empty")}, ["model.embedder.token_embedders.elmo"]),
    ({"model.embedder": elmo("none")}, ["model.embedder.token_embedders.elmo.bilm"]),
    (
        {"model.embedder": elmo("none"), "trainer.optimizer": None},
        ["trainer.optimizer", "model.embedder.token_embedders.elmo.bilm"],
    ),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with training data and an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("Anna B-PER\nleft O\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


def raw(changes: dict[str, Any]) -> dict[str, Any]:
    """The config of a tagger, changed at dotted paths."""
    config: dict[str, Any] = {
        "dataset_reader": "conll2003",
        "train_data_path": "train.txt",
        "model": {
            "type": "crf_tagger",
            "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 5}}},
            "encoder": dict(LSTM),
        },
        "trainer": {},
    }
    for path, value in changes.items():
        *blocks, key = path.split(".")
        block = config
        for name in blocks:
            block = block[name]
        block[key] = value
    return config


def checked(changes: dict[str, Any]) -> CheckResult:
    return check_config(Config(raw(changes), "ner.json", ""))


@pytest.mark.parametrize(("changes", "paths"), BROKEN)
def test_check_and_train_report_the_same_problems(
    changes: dict[str, Any], paths: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [problem.path for problem in checked(changes).problems] == paths
    Path("ner.json").write_text(json.dumps(raw(changes)))
    assert main(["check", "ner.json"]) == 2
    from_check = capsys.readouterr().err
    assert main(["train", "ner.json", "-s", "run"]) == 2
    assert capsys.readouterr().err == from_check
    assert not (folder / "run").exists()


@pytest.mark.parametrize("damage", [{"model": 3}, {"dataset_reader": {}}, {"trainer": []}])
def test_unreadable_parts_are_one_problem(damage: dict[str, Any]) -> None:
    assert len(checked(damage).problems) == 1


def test_valid_config_gives_experiment_and_report() -> None:
    result = checked({})
    parsed, experiment = result.unwrap()
    assert parsed.factory is Experiment
    assert isinstance(experiment, Experiment)
    assert result.report is not None


def test_a_missing_extra_is_reported_with_other_problems(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / "model.safetensors").touch()
    (folder / "tokenizer.json").touch()
    transformer = {"type": "pretrained_transformer_mismatched", "model_name": "."}
    changes = {"model.embedder": {"token_embedders": {"bert": transformer}}}
    first, second = checked({**changes, "validation_data_path": "none.txt"}).problems
    assert first.path == "validation_data_path"
    assert str(second) == (
        "model.embedder.token_embedders.bert: transformers is not installed; "
        "run: pip install 'elmo-framework[transformers]'"
    )


def test_metric_of_another_task_is_refused_with_those_that_fit() -> None:
    (problem,) = checked({"model.metrics": ["confusion", "squad"]}).problems
    assert str(problem) == (
        "model.metrics[1]: 'squad' compares Answer, but the model 'crf_tagger' predicts "
        "Sequence[str]; it is for the models bidaf, bidaf_self_attention; metrics that fit: "
        "categorical_accuracy, confusion, label_f1, mcc, span_f1"
    )


def test_validation_metric_may_be_one_of_the_config() -> None:
    changes = {"trainer.validation_metric": "+mcc", "validation_data_path": "train.txt"}
    assert not checked({**changes, "model.metrics": ["mcc"]}).problems
    (problem,) = checked(
        {**changes, "trainer.validation_metric": "+mc", "model.metrics": ["mcc"]}
    ).problems
    assert "'+mc' is not a score of this model" in problem.message
    assert problem.message.endswith("Did you mean 'mcc'?")
    (problem,) = checked(changes).problems
    assert "'+mcc' is not a score of this model" in problem.message
    (problem,) = checked(
        {**changes, "trainer.validation_metric": "-mcc", "model.metrics": ["mcc"]}
    ).problems
    assert "larger is better; write '+mcc'" in problem.message


def test_data_that_is_scored_is_read_with_the_training_data(folder: Path) -> None:
    (folder / "valid.txt").write_text("Oslo B-LOC\nleft O\n")
    changes = {"validation_data_path": "valid.txt", "trainer.num_epochs": 1}
    config = Config(raw(changes), "ner.json", "")
    assert not check_config(config).problems
    with pytest.raises(DataError, match=r"^valid\.txt: 'B-LOC' is not among the labels"):
        check_config(config, reads_data=True)


def test_validation_metric_of_a_label_is_one_of_the_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = {"validation_data_path": "train.txt", "trainer.num_epochs": 1}
    written = raw({**changes, "trainer.validation_metric": "+f1-measure-LOC"})
    config = Config(written, "ner.json", "")
    assert not check_config(config).problems
    (problem,) = check_config(config, reads_data=True).problems
    assert "'+f1-measure-LOC' is not a score of this model" in problem.message
    assert "f1-measure-PER, f1-measure-macro" in problem.message
    Path("ner.json").write_text(json.dumps(written))
    assert main(["train", "ner.json", "-s", "run"]) == 2
    assert problem.message in capsys.readouterr().err
    assert not Path("run/checkpoints").exists()
    right = Config(raw({**changes, "trainer.validation_metric": "+f1-measure-PER"}), "ner.json", "")
    assert not check_config(right, reads_data=True).problems
