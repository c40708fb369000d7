import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from elmo_framework import components
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.config.types import Lazy
from elmo_framework.errors import ConfigError
from elmo_framework.experiment.experiment import Experiment
from elmo_framework.experiment.model_report import (
    AssumedVocabularies,
    ComponentDims,
    ModelReport,
    PartSize,
    count_parameters,
    frozen_parameters,
    inspect_model,
    model_problems,
)
from elmo_framework.model.model import Model
from elmo_framework.model.part import Part
from tests.numpy_bilm import NumpyBiLm

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
    embedder: dict[str, Any] | None = None,
    **trainer: object,
) -> Lazy[Experiment]:
    tokens = embedder or {"type": "embedding", "embedding_dim": 50}
    model = {
        "type": "crf_tagger",
        "embedder": {"token_embedders": {"tokens": tokens}},
        "encoder": {"type": "lstm", "hidden_size": 20, **(encoder or {})},
    }
    raw = {
        "dataset_reader": reader,
        "train_data_path": str(data),
        "model": model,
        "trainer": trainer,
    }
    return parse(Experiment, raw, source="ner.jsonnet")


def parts(report: ModelReport) -> dict[str, int]:
    return {each.name: each.total for each in report.parts}


def test_without_data_sizes_are_those_of_an_assumed_vocabulary(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=False)
    assert parts(report)["embedder"] == 50 * (2 + 10_000)
    assert parts(report)["encoder"] == 4 * 20 * (50 + 20 + 2)
    assert report.vocabularies == {"beginnings": 21, "labels": 21, "words": 10_000}
    assert (report.frozen, report.is_counted) == ({}, False)


def test_with_data_sizes_are_those_of_its_vocabulary(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=True)
    assert parts(report)["embedder"] == 50 * (2 + 4)
    assert report.vocabularies == {"beginnings": 2, "labels": 5, "words": 4}
    assert report.is_counted


def test_the_widths_of_components_are_those_inferred(data: Path) -> None:
    report = inspect_model(experiment(data), reads_data=False)
    assert ComponentDims("encoder", "LstmEncoder", 50, 20) in report.dims
    assert report.dims[0].name == "embedder"


def test_no_grad_parameters_are_not_counted_as_trainable(data: Path) -> None:
    report = inspect_model(experiment(data, no_grad=["^encoder"]), reads_data=False)
    (encoder,) = (each for each in report.parts if each.name == "encoder")
    assert (encoder.trainable, encoder.total > 0) == (0, True)


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


def test_groups_of_parameters_are_disjoint_and_not_empty(data: Path) -> None:
    groups = [{"parameters": ["encoder", "xyz"], "lr": 1}, {"parameters": ["weight"], "lr": 2}]
    with pytest.raises(ConfigError) as caught:
        inspect_model(experiment(data, parameter_groups=groups), reads_data=False)
    first, second = caught.value.problems
    assert first.path == "trainer.parameter_groups[0].parameters[1]"
    assert first.message.startswith("'xyz' matches no parameter's name")
    assert second.path == "trainer.parameter_groups"
    assert "is in the groups 0 and 1; a parameter is in one" in second.message
    groups = [{"parameters": ["encoder"]}]
    with pytest.raises(ConfigError, match="a group needs an lr or a weight_decay"):
        inspect_model(experiment(data, parameter_groups=groups), reads_data=False)
    groups = [{"parameters": ["encoder"], "lr": 1}]
    with pytest.raises(ConfigError, match="both set rates; remove one of them"):
        inspect_model(experiment(data, parameter_groups=groups, unfreezing={}), reads_data=False)


@pytest.mark.parametrize(
    ("requires_grad", "no_grad", "message"),
    [
        (True, ["context_layers"], None),
        (True, ["bilm"], "has no effect, because trainer.no_grad freezes all layers"),
        (False, [], "has no effect, because no encoder is trained with the task"),
    ],
)
def test_unfreezing_without_effect_is_a_problem(
    data: Path, tmp_path: Path, requires_grad: bool, no_grad: list[str], message: str | None
) -> None:
    bilm = NumpyBiLm.random().save(tmp_path / "bilm")
    elmo = {"type": "elmo_token_embedder", "bilm": str(bilm), "requires_grad": requires_grad}
    lazy = experiment(data, embedder=elmo, unfreezing={}, no_grad=no_grad)
    if message is None:
        inspect_model(lazy, reads_data=False)
        return
    with pytest.raises(ConfigError) as caught:
        inspect_model(lazy, reads_data=False)
    (problem,) = caught.value.problems
    assert problem.path == "trainer.unfreezing"
    assert problem.message.startswith(message)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "+f1",
            "'+f1' is not a score of this model; choose from accuracy, accuracy3, "
            "f1-measure-macro, f1-measure-overall",
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


def test_an_unavailable_metric_is_found_by_reading_the_data(data: Path) -> None:
    data.write_text("Anna NNP B-NP O\nleft VBD B-VP O\n")
    reader = {"type": "conll2003", "tag_label": "pos", "coding_scheme": None}
    of_spans = experiment(data, reader=reader, validation_metric="+f1-measure-overall")
    inspect_model(of_spans, reads_data=False)
    with pytest.raises(ConfigError, match=r"'\+f1-measure-overall' is not a score of this model"):
        inspect_model(of_spans, reads_data=True)


@pytest.mark.parametrize(
    "metric", ["-loss", "+accuracy3", "+f1-measure-overall", "+f1-measure-PER"]
)
def test_scores_of_the_task_of_the_head_and_of_types_pass(data: Path, metric: str) -> None:
    inspect_model(experiment(data, validation_metric=metric), reads_data=False)


@pytest.mark.parametrize("hidden_size", [20, 21, 22])
def test_a_size_near_that_of_an_assumed_vocabulary_is_right(data: Path, hidden_size: int) -> None:
    report = inspect_model(experiment(data, {"hidden_size": hidden_size}), reads_data=False)
    assert parts(report)["encoder"] == 4 * hidden_size * (50 + hidden_size + 2)


@pytest.mark.parametrize("path", WITHOUT_BILM, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_rules_of_a_shipped_config_fit_its_parameters(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The compiler takes longer to import than all the rest of a check.
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
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


def test_initializer_and_size_errors_are_reported_together(data: Path) -> None:
    job = experiment(data, encoder={"input_size": 7})
    model = {**filled(job)["model"], "initializer": [["bias_hh", "orthogonal"]]}
    raw = {**filled(job), "model": model}

    with pytest.raises(ConfigError) as caught:
        inspect_model(parse(Experiment, raw, source="job"), reads_data=False)

    assert [problem.path for problem in caught.value.problems] == [
        "model.encoder.input_size",
        "model.initializer[0][1]",
    ]


def test_no_grad_patterns_are_validated(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"trainer\.no_grad\[1\]: Input should be a regular exp"):
        experiment(data, no_grad=["encoder", "(embedder"])
    with pytest.raises(ConfigError, match=r"matches no .* the nearest are 'encoder\.lstm\.weigh"):
        inspect_model(experiment(data, no_grad=["encodr.weight"]), reads_data=False)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(50, 10, bias=False)
        self.second = nn.Linear(50, 10)
        self.second.weight = self.first.weight
        self.matrix = nn.Parameter(torch.zeros(7, 7), requires_grad=False)


class Reading(Part):
    num_frozen_parameters = 7


def test_a_shared_parameter_counts_once() -> None:
    assert count_parameters(Tied()) == [
        PartSize("matrix", 49, 0),
        PartSize("first", 500, 500),
        PartSize("second", 10, 10),
    ]


def test_parameters_matching_a_frozen_pattern_are_not_trainable() -> None:
    assert PartSize("first", 500, 0) in count_parameters(Tied(), frozen=["^fir"])


def test_frozen_parameters_outside_the_module_are_found() -> None:
    assert frozen_parameters(nn.Sequential(nn.Linear(2, 2), Reading())) == {"1": 7}


def test_assumed_vocabularies_are_those_asked_for() -> None:
    assumed = AssumedVocabularies()
    asked = [assumed.labels(), assumed.words(), assumed.labels("senses")]
    assert [len(each) for each in asked] == [21, 10_000 + 2, 21]
    assert sorted(asked[0].items)[:3] == ["B-X0", "B-X1", "B-X2"]
    assert assumed.names == ["labels", "senses", "words"]


@pytest.mark.parametrize(
    ("cell_size", "projection_dim", "num_highway", "expected"),
    [(1024, 128, 1, 13_593_296), (2048, 256, 1, 28_027_728), (4096, 512, 2, 93_600_848)],
    ids=["small", "medium", "original"],
)
def test_the_published_bilms_have_their_published_sizes(
    cell_size: int, projection_dim: int, num_highway: int, expected: int
) -> None:
    raw = {
        "type": "bilm",
        "token_encoder": {
            "type": "char_cnn",
            "num_highway": num_highway,
            "projection_dim": projection_dim,
        },
        "context_layers": {
            "type": "elmo_lstm",
            "cell_size": cell_size,
            "projection_dim": projection_dim,
        },
    }
    with torch.device("meta"):
        model = parse(Model, raw, source="lm").build(vocabularies=AssumedVocabularies())
    assert PartSize("bilm", expected, expected) in count_parameters(model)
