from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.config.types import Lazy
from elmo_framework.errors import ConfigError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.model_report import (
    ModelReport,
    Width,
    inspect_model,
    model_problems,
)
from elmo_framework.experiment.parameter_counts import amount_as_json

components.load()

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
WITHOUT_BILM = [
    *EXPERIMENTS.glob("*/baseline.jsonnet"),
    EXPERIMENTS / "squad/bidaf.jsonnet",
    EXPERIMENTS / "pretrain/tiny.jsonnet",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text("Anna B-PER\nleft O\n\nLisbon B-LOC\nslept O\nleft O\n")
    return path


def experiment(
    data: Path,
    encoder: dict[str, Any] | None = None,
    reader: object = "conll2003",
    **trainer: object,
) -> Lazy[Experiment]:
    model = {
        "type": "crf_tagger",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 50}}},
        "encoder": {"type": "lstm", "hidden_size": 20, **(encoder or {})},
    }
    raw = {
        "dataset_reader": reader,
        "train_data_path": str(data),
        "model": model,
        "trainer": trainer,
    }
    return parse(Experiment, raw, source="ner.jsonnet")


def parts(report: ModelReport) -> dict[str, object]:
    return {each.name: amount_as_json(each.total) for each in report.counts}


def test_without_data_what_depends_on_it_stays_a_symbol(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=False)
    assert parts(report)["embedder"] == "100 + 50 × words"  # noqa: RUF001
    assert parts(report)["encoder"] == 4 * 20 * (50 + 20 + 2)
    assert (report.frozen, report.vocabularies) == ({}, {})


def test_with_data_everything_is_a_number(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=True)
    assert parts(report)["embedder"] == 50 * (2 + 4)
    assert report.vocabularies == {"beginnings": 2, "labels": 5, "words": 4}


def test_the_widths_of_components_are_those_inferred(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=False)
    wanted = Width("encoder", "LstmEncoder", Counter({(): 50}), Counter({(): 20}))
    assert wanted in report.widths
    assert report.widths[0].name == "embedder"


def test_what_trainer_freezes_is_not_counted_as_trainable(data: Path) -> None:
    report = inspect_model(experiment(data, no_grad=["^encoder"]), reads_data=False)
    (encoder,) = (each for each in report.counts if each.name == "encoder")
    assert (amount_as_json(encoder.trainable), encoder.total[()] > 0) == (0, True)


def test_refusals_of_all_parts_come_together(data: Path) -> None:
    wrong = experiment(data, {"input_size": 7}, validation_metric="f1")
    with pytest.raises(ConfigError) as caught:
        inspect_model(wrong, reads_data=False)
    assert [problem.path for problem in caught.value.problems] == [
        "trainer",
        "model.encoder.input_size",
    ]


def test_a_pattern_that_freezes_nothing_is_a_problem(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"trainer\.no_grad\[1\]: 'xyz' matches no parameter's"):
        inspect_model(experiment(data, no_grad=["encoder", "xyz"]), reads_data=False)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "+f1",
            "'+f1' is no score of this model; allowed: accuracy, accuracy3, f1-measure-overall",
        ),
        ("+loss", "'+loss' would keep the worst weights: smaller is better; write '-loss'"),
        ("-accuracy3", "'-accuracy3' would keep the worst weights: larger is better; write '+acc"),
        ("-f1-measure-PER", "'-f1-measure-PER' would keep the worst weights: larger is better; "),
    ],
)
def test_a_metric_that_cannot_choose_weights_is_a_problem(
    data: Path, metric: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        inspect_model(experiment(data, validation_metric=metric), reads_data=False)
    (problem,) = caught.value.problems
    assert problem.path == "trainer.validation_metric"
    assert problem.message.startswith(message)


def test_a_metric_that_the_labels_leave_out_is_a_problem_of_the_data(data: Path) -> None:
    data.write_text("Anna NNP B-NP O\nleft VBD B-VP O\n")
    reader = {"type": "conll2003", "tag_label": "pos", "coding_scheme": None}
    of_spans = experiment(data, reader=reader, validation_metric="+f1-measure-overall")
    inspect_model(of_spans, reads_data=False)
    with pytest.raises(ConfigError, match=r"'\+f1-measure-overall' is no score of this model"):
        inspect_model(of_spans, reads_data=True)


@pytest.mark.parametrize(
    "metric", ["-loss", "+accuracy3", "+f1-measure-overall", "+f1-measure-PER"]
)
def test_scores_of_the_task_of_the_head_and_of_types_pass(data: Path, metric: str) -> None:
    inspect_model(experiment(data, validation_metric=metric), reads_data=False)


@pytest.mark.parametrize("hidden_size", range(96, 112))
def test_a_size_near_that_of_a_placeholder_is_still_a_number(data: Path, hidden_size: int) -> None:
    report = inspect_model(experiment(data, {"hidden_size": hidden_size}), reads_data=False)
    assert parts(report)["encoder"] == 4 * hidden_size * (50 + hidden_size + 2)


@pytest.mark.parametrize("path", WITHOUT_BILM, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_rules_of_a_shipped_config_fit_its_parameters(path: Path) -> None:
    raw = Config.load(path).raw
    model: Lazy[Any] = parse(Experiment, raw, source="job").arguments["model"]
    assert model_problems(model) == []

    rules = [*(raw["model"].get("initializer") or []), ["no_such_parameter", "zero"]]
    raw["model"] |= {"initializer": rules, "regularizer": [["neither_this", "l2"]]}
    model = parse(Experiment, raw, source="job").arguments["model"]
    assert [problem.path for problem in model_problems(model)] == [
        f"model.initializer[{len(rules) - 1}][0]",
        "model.regularizer[0][0]",
    ]


def test_an_initializer_that_cannot_fill_is_reported_with_wrong_sizes(data: Path) -> None:
    job = experiment(data, encoder={"input_size": 7})
    model = {**filled(job)["model"], "initializer": [["bias_hh", "orthogonal"]]}
    raw = {**filled(job), "model": model}

    with pytest.raises(ConfigError) as caught:
        inspect_model(parse(Experiment, raw, source="job"), reads_data=False)

    assert [problem.path for problem in caught.value.problems] == [
        "model.encoder.input_size",
        "model.initializer[0][1]",
    ]


def test_an_expression_of_frozen_parameters_is_checked_where_it_is_read(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"trainer\.no_grad\[1\]: Input should be a regular exp"):
        experiment(data, no_grad=["encoder", "(embedder"])
    with pytest.raises(ConfigError, match=r"matches no .* the nearest are 'encoder\.lstm\.weigh"):
        inspect_model(experiment(data, no_grad=["encodr.weight"]), reads_data=False)
