"""What holds for every head that chooses one label for each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from elmo_framework.data.vocabulary import Vocabularies
from elmo_framework.model.classifier import Classifier
from tests.unit.tasks.learning import fit


def batch_of(model: Classifier, counts: Vocabularies, examples: Sequence[Any]) -> Any:
    return model.task.collator(counts, model.indexers)(examples)


def check_a_batch_equals_its_rows(
    model: Classifier, counts: Vocabularies, examples: Sequence[Any]
) -> None:
    """And so padding, which the rows have less of, changes nothing."""
    model = model.double().eval()
    batch = batch_of(model, counts, examples)
    together = model(batch)
    for row, example in enumerate(examples):
        own = batch_of(model, counts, [example])
        alone = model(own)
        close = {"rtol": 0, "atol": 1e-10}
        torch.testing.assert_close(alone.logits[0], together.logits[row], **close)
        torch.testing.assert_close(alone.loss, together.example_losses[row], **close)
        assert model.predict(alone, own)[0].label == model.predict(together, batch)[row].label
    torch.testing.assert_close(together.loss, together.example_losses.mean())


def check_gradients(model: Classifier, counts: Vocabularies, examples: Sequence[Any]) -> None:
    """They reach every parameter that is trained."""
    model(batch_of(model.train(), counts, examples)).loss.backward()
    without = {name for name, value in model.named_parameters() if not value.grad.any()}
    assert without == set()


def check_learning(model: Classifier, counts: Vocabularies, examples: Sequence[Any]) -> None:
    """A few updates make the right label of each example the most probable one."""
    batch = batch_of(model, counts, examples)
    fit(model.train(), batch, lr=0.02, num_steps=60)
    model.eval()
    with torch.no_grad():
        scores = model.scores(model.sums(model(batch), batch))
    assert scores["accuracy"] == 1.0
    assert scores["loss"] < 0.5
