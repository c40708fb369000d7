"""Scores of a model on some data, exact over processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch

from elmo_framework.data.batch import to_device
from elmo_framework.data.source import BatchSource
from elmo_framework.errors import RunError, allowed
from elmo_framework.metrics.metric import is_of_one_type
from elmo_framework.model.model import Model
from elmo_framework.training.interrupt import Interrupt, StopRequestedError
from elmo_framework.training.process_group import SYNC_INTERVAL, ProcessGroup

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

    def scores(self, model: Model[Any], interrupt: Interrupt | None = None) -> dict[str, float]:
        """Return the scores over all batches of all processes; see `sums`."""
        return model.scores(self.sums(model, interrupt=interrupt))

    def sums(
        self,
        model: Model[Any],
        note: Callable[[Any, Any], None] | None = None,
        interrupt: Interrupt | None = None,
    ) -> Mapping[str, float]:
        """Return the sums over all batches of all processes, which scores are made of.

        Args:
            model: called without gradients and without dropout, its carried state put aside.
            note: told each batch and its output, on the process that computes them.
            interrupt: tells when the user wants to stop.

        Raises:
            StopRequestedError: a process was asked to stop; all raise it, between two batches.
        """
        sums: Counter[str] = Counter()
        with inference(model), model.fresh_state():
            for batch in self._batches(interrupt or Interrupt()):
                sums.update(self._sums(model, batch, note))
        return self._group.sum(sums)

    def _batches(self, interrupt: Interrupt) -> Iterator[Any]:
        """Yield the batches of this process, until all processes have had theirs.

        Raises:
            StopRequestedError: one of them was asked to stop.
        """
        size = 1 if self._group.is_alone or self._device.type == "cpu" else SYNC_INTERVAL
        batches, is_done = self._source.batches(), False
        while True:
            # A process with fewer batches than the others still answers each of their looks.
            looks = self._group.gather((interrupt.signal_name, is_done))
            for signal_name, _ in looks:
                if signal_name is not None:
                    raise StopRequestedError(signal_name)
            if all(is_done for _, is_done in looks):
                return
            is_done = True
            for number, batch in enumerate(islice(batches, size), start=1):
                is_done = number < size
                yield batch

    def sanity_check(self, model: Model[Any]) -> None:
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
