"""Learning rate schedulers of AllenNLP."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_framework.compat.allennlp.rules import Context, Place
from elmo_framework.compat.allennlp.schedulers import scheduler


def translated(values: dict[str, Any], **config: Any) -> Context:
    context = Context({"trainer": {"num_epochs": 3}, **config})
    scheduler(Place(context).at("trainer").at("learning_rate_scheduler"), values)
    return context


def test_length_of_a_schedule_must_be_that_of_the_training() -> None:
    assert not translated({"type": "slanted_triangular", "num_epochs": 3}).problems
    (problem,) = translated({"type": "slanted_triangular", "num_epochs": 10}).problems
    assert problem.message.startswith("10 is not num_epochs of the trainer, 3")
    default = {"type": "slanted_triangular", "num_epochs": 20}
    assert not translated(default, trainer={}).problems


@pytest.mark.parametrize(
    "values",
    [
        {"type": "linear_with_warmup", "num_steps_per_epoch": 50},
        {"type": "cosine_with_warmup", "num_training_steps": 50},
    ],
)
def test_number_of_steps_differs_in_effect(values: dict[str, Any]) -> None:
    (text,) = [note.text for note in translated(values).notes if note.kind == "differs"]
    assert text.endswith("AllenNLP takes 50")


@pytest.mark.parametrize(
    ("metric", "config", "differs"),
    [
        ("-loss", {"data_loader": {}}, True),
        ("-loss", {"iterator": {}}, False),
        ("+accuracy", {"iterator": {}}, True),
    ],
)
def test_missing_mode_of_a_plateau_differs_in_effect(
    metric: str, config: dict[str, Any], differs: bool
) -> None:
    trainer = {"validation_metric": metric}
    notes = translated({"type": "reduce_on_plateau"}, trainer=trainer, **config).notes
    assert any("mode is 'min'" in note.text for note in notes) is differs
