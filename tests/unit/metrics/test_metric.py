from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from elmo_framework.data.labels import Classification
from elmo_framework.errors import BuildError
from elmo_framework.metrics.accuracy import Accuracy, TopAccuracy
from elmo_framework.metrics.label_f1 import LabelF1
from elmo_framework.metrics.metric import Metric, is_nearly_over_labels, is_of_one_type
from elmo_framework.metrics.span_f1 import SpanF1
from elmo_framework.metrics.squad import Answer, SquadScores
from elmo_framework.metrics.srl import SrlEval


class Anything(Metric):
    """Counts predictions of every task."""

    def count(self, prediction: Any, gold: Any) -> Mapping[str, float]:
        return {"total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"total": sums.get("total", 0.0)}


@pytest.mark.parametrize("metric", [Accuracy, TopAccuracy, Anything])
def test_metric_accepts_the_predictions_of_its_annotation(metric: type[Metric]) -> None:
    assert metric.accepts(Classification)


@pytest.mark.parametrize(("metric", "prediction"), [(TopAccuracy, str), (SquadScores, str)])
def test_metric_refuses_other_predictions(metric: type[Metric], prediction: Any) -> None:
    assert not metric.accepts(prediction)


@pytest.mark.parametrize("prediction", [str, Sequence[str], Classification])
def test_each_type_of_a_union_is_accepted(prediction: Any) -> None:
    assert Accuracy.accepts(prediction)
    assert not Accuracy.accepts(Answer)


def test_type_that_is_missing_at_run_time_is_an_error() -> None:
    class Late(Anything):
        def count(self, prediction: Missing, gold: str) -> Mapping[str, float]:  # type: ignore[name-defined]  # noqa: F821
            return {}

    with pytest.raises(BuildError, match=r"Late\.count: name 'Missing' is not defined; types of"):
        Late.accepts(str)


def test_metric_must_annotate_the_predictions_that_it_compares() -> None:
    with pytest.raises(TypeError, match=r"Bare\.count: annotate its parameter `prediction` with"):

        class Bare(Anything):
            def count(self, prediction, gold: str) -> Mapping[str, float]:  # type: ignore[no-untyped-def]
                return {}


def test_predictions_of_an_unknown_type_are_accepted() -> None:
    assert SquadScores.accepts(Any)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f1-measure-PER", True),
        ("f1-measure-overall", False),
        ("precision-PER", True),
        ("f1-measure-macro", False),
        ("loss", False),
    ],
)
def test_score_of_one_type_has_one_over_all_types(name: str, expected: bool) -> None:
    assert is_of_one_type(name, ["loss", "f1-measure-overall", "precision"]) is expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [("ovrall", True), ("mcro", True), ("overall", False), ("weight", False), ("PER", False)],
)
def test_misspelled_scores_over_labels_are_recognized(end: str, expected: bool) -> None:
    assert is_nearly_over_labels(f"f1-measure-{end}") is expected


def test_scores_of_labels_are_named_as_in_the_scores() -> None:
    tags = ["O", "B-PER", "I-PER", "U-LOC", "B-C-ARG0"]
    assert {"f1-measure-PER", "f1-measure-LOC"} <= {*SpanF1().names_of_scores(tags)}
    assert "f1-measure-ARG0" in SrlEval().names_of_scores(tags)
    assert "f1-measure-C-ARG0" not in SrlEval().names_of_scores(tags)
    assert "precision-B-PER" in LabelF1().names_of_scores(tags)
    assert Accuracy().names_of_scores(tags) is None


def test_without_an_overall_score_no_score_is_of_one_type() -> None:
    assert not is_of_one_type("f1-measure-PER", ["f1-measure-PER", "loss"])
