from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from elmo_framework.metrics.metric import Metric, Table
from elmo_framework.model.head import Head
from elmo_framework.model.model import ModelOutput


class Count(Metric):
    """Adds up the predictions, and how many there are."""

    def count(self, prediction: float, gold: float) -> Mapping[str, float]:
        return {"right/all": float(prediction == gold), "total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {f"share-of-{sums.get('total', 0.0):g}": sums.get("right/all", 0.0)}

    def table(self, sums: Mapping[str, float]) -> Table:
        return {"right": {"all": int(sums["right/all"])}} if sums else {}


class Plain(Metric):
    """Sums of the same names as those of another metric."""

    def count(self, prediction: float, gold: float) -> Mapping[str, float]:
        return {"total": 10.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"plain": sums.get("total", 0.0)}


class Numbered(Metric):
    """Counts under a name with a parameter."""

    def __init__(self, number: int) -> None:
        self.number = number

    def count(self, prediction: float, gold: float) -> Mapping[str, float]:
        return {"total": 1.0}

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {f"numbered{self.number}": self.number * sums.get("total", 0.0)}


class Fixed(Numbered):
    """Gives one name to its score for all its parameters."""

    def score(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"fixed": self.number * sums.get("total", 0.0)}


class Task:
    metrics = {"count": Count(), "count_too": Plain()}  # noqa: RUF012

    def gold(self, example: float) -> float:
        return example


@dataclass
class Batch:
    examples: tuple[float, ...]
    num_tokens: int = 0
    title: str = ""


class Echo(Head[Any]):
    """Predicts 1 for each example."""

    task = Task()  # type: ignore[assignment]

    def forward(self, batch: Batch) -> ModelOutput:
        losses = torch.tensor(batch.examples)
        return ModelOutput(loss=losses.mean(), example_losses=losses)

    def predict(self, output: Any, batch: Batch) -> list[float]:
        return [1.0] * len(batch.examples)


def echo(*metrics: Metric) -> Echo:
    head = Echo()
    head.post_init(metrics=[*metrics])
    return head


def sums(*examples: float) -> Mapping[str, float]:
    head, batch = Echo(), Batch(examples)
    return head.sums(head(batch), batch)


def test_sums_of_batches_add_up_for_any_size():
    first, second, whole = sums(1.0), sums(2.0, 6.0), sums(1.0, 2.0, 6.0)

    assert whole == {name: first[name] + second[name] for name in whole}
    assert Echo().scores(whole)["loss"] == 3.0


def test_metrics_have_separate_sums():
    assert Echo().scores(sums(1.0, 2.0)) == {"loss": 1.5, "share-of-2": 1.0, "plain": 20.0}


def test_without_labels_there_is_no_loss():
    batch = Batch((1.0,))
    unlabeled = ModelOutput(loss=None)

    assert "loss" not in Echo().scores(Echo().sums(unlabeled, batch))


def test_only_metrics_that_have_a_table_show_one():
    assert Echo().tables(sums(1.0, 1.0)) == {"count": {"right": {"all": 2}}}


def test_head_must_predict_for_each_example():
    class Forgetful(Echo):
        def predict(self, output: Any, batch: Batch) -> list[float]:
            return []

    head, batch = Forgetful(), Batch((1.0,))
    with pytest.raises(ValueError, match="zip"):
        head.sums(head(batch), batch)


def test_metrics_of_the_config_are_added_to_those_of_the_task():
    head, batch = echo(Numbered(3), Numbered(4)), Batch((1.0, 2.0))

    scores = head.scores(head.sums(head(batch), batch))

    own = {"loss": 1.5, "share-of-2": 1.0, "plain": 20.0}
    assert scores == {**own, "numbered3": 6.0, "numbered4": 8.0}


def test_metrics_of_one_head_are_not_those_of_another():
    assert "numbered3" in echo(Numbered(3)).scores({})
    assert "numbered3" not in Echo().scores({})


def test_a_metric_of_the_task_is_computed_once():
    assert list(echo(Plain()).metrics) == list(Task.metrics)


def test_two_metrics_with_one_score_are_refused():
    class Other(Numbered):
        pass

    with pytest.raises(ValueError, match=r"^metrics\[1\] gives the score 'numbered3', which"):
        echo(Numbered(3), Other(3))


def test_a_metric_called_loss_is_refused():
    class Loss(Plain):
        def score(self, sums: Mapping[str, float]) -> dict[str, float]:
            return {"loss": 0.0}

    with pytest.raises(ValueError, match=r"^metrics\[0\] gives the score 'loss', which"):
        echo(Loss())


def test_a_metric_without_scores_of_empty_sums_is_refused():
    class Strict(Plain):
        def score(self, sums: Mapping[str, float]) -> dict[str, float]:
            return {"strict": sums["total"]}

    with pytest.raises(ValueError, match=r"^metrics\[0\] gives no scores for empty sums: KeyError"):
        echo(Strict())


def test_a_metric_listed_twice_is_refused():
    with pytest.raises(
        ValueError, match=r"^metrics\[1\] gives the score 'numbered3', which.*remove"
    ):
        echo(Numbered(3), Numbered(3))


def test_a_metric_with_other_parameters_needs_another_score():
    class Task:
        metrics = {"fixed": Fixed(3)}  # noqa: RUF012

    class Own(Echo):
        task = Task()  # type: ignore[assignment]

    Own().post_init(metrics=[Fixed(3)])
    with pytest.raises(ValueError, match=r"^metrics\[0\] gives the score 'fixed'.* name it after"):
        Own().post_init(metrics=[Fixed(4)])


@pytest.mark.parametrize("method", ["count", "score", "table"])
def test_an_error_in_a_metric_names_it(method: str, monkeypatch: pytest.MonkeyPatch):
    head = echo(Fixed(3))

    def fail(*arguments: Any) -> None:
        raise AttributeError("broken")

    monkeypatch.setattr(Fixed, method, fail)
    compute = {"score": head.scores, "table": head.tables}.get(method, head.sums)
    arguments = [head(Batch((1.0,))), Batch((1.0,))] if method == "count" else [{}]
    with pytest.raises(AttributeError, match=r"^broken\nwhile computing the metric 'Fixed' in "):
        compute(*arguments)
