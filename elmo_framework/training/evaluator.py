"""Scores of a model on some data, exact over processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from elmo_framework.common.errors import RunError, allowed
from elmo_framework.data.batch import to_device
from elmo_framework.data.source import BatchSource
from elmo_framework.metrics.metric import is_of_one_type
from elmo_framework.model.model import Model
from elmo_framework.training.process_group import ProcessGroup

_BETTER = {
    "-": (re.compile(r"(.*_)?(loss|perplexity)"), "smaller"),
    "+": (re.compile(r"accuracy\d*|(.*_)?(acc|em|f1|precision|recall)(-.*)?"), "larger"),
}
"""By its sign: which scores are known to be better when they are so."""


class Evaluator:
    """Scores a model on one set of data.

    Args:
        source: the batches, in a fixed order, each example once.
        group: the processes that share them.
        device: where the model is.
        precision: as in training.
    """

    def __init__(
        self,
        source: BatchSource[Any],
        *,
        group: ProcessGroup,
        device: torch.device,
        precision: str = "float32",
    ) -> None:
        self._source, self._group = source, group
        self._device, self._precision = device, precision

    def scores(self, model: Model[Any]) -> dict[str, float]:
        """Return the scores over all batches of all processes."""
        return model.scores(self.sums(model))

    def sums(
        self, model: Model[Any], note: Callable[[Any, Any], None] | None = None
    ) -> Mapping[str, float]:
        """Return the sums over all batches of all processes, which scores are made of.

        Args:
            model: called without gradients and without dropout, its carried state put aside.
            note: told each batch and its output, on the process that computes them.
        """
        sums: Counter[str] = Counter()
        with inference(model), model.fresh_state():
            for held in self._source.batches():
                sums.update(self._sums(model, held, note))
        return self._group.sum(sums)

    def rehearse(self, model: Model[Any]) -> None:
        """Make every batch and score the first, so that what would fail later fails now.

        Of data with fewer batches than there are processes, none may be left for this one.

        Raises:
            DataError: a label was not seen in training.
        """
        batches = self._source.batches()
        first = next(batches, None)
        if first is None:
            return
        for _ in batches:  # made, and none of them held: together they may fill the memory
            pass
        with inference(model), model.fresh_state():
            model.scores(self._sums(model, first, None))

    def _sums(
        self, model: Model[Any], held: Any, note: Callable[[Any, Any], None] | None
    ) -> Mapping[str, float]:
        batch = to_device(held, self._device)
        with autocast(self._device, self._precision):
            output = model(batch)
        if note is not None:
            note(batch, output)
        return model.sums(output, batch)


def require_score(metric: str, scores: Mapping[str, float]) -> None:
    """Refuse a metric that a model does not have.

    Args:
        metric: `trainer.validation_metric`, its sign included.
        scores: those that the model has.

    Raises:
        RunError: it is none of them.
    """
    if metric[1:] not in scores:
        raise RunError(f"trainer.validation_metric: {_no_score(metric, scores)}")


def metric_problem(metric: str, model: Model[Any]) -> str | None:
    """Say what is wrong with a metric, as far as the model tells it without data.

    Scores of one type of label, such as `f1-measure-PER`, come with the data.

    Args:
        metric: `trainer.validation_metric`, its sign included.
        model: what is trained.
    """
    name, known = metric[1:], {"loss", *model.scores({})}
    if name not in known and not is_of_one_type(name, known):
        return _no_score(metric, known)
    for sign, (names, size) in _BETTER.items():
        if names.fullmatch(name) and metric[0] != sign:
            return (
                f"{metric!r} would keep the worst weights: {size} is better; write {sign + name!r}"
            )
    return None


def _no_score(metric: str, known: Collection[str]) -> str:
    return f"{metric!r} is no score of this model; {allowed(metric[1:], known)}"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return the context in which products run in `precision`."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


@contextmanager
def inference(model: Model[Any]) -> Iterator[None]:
    """Switch dropout and gradients off for a while."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
