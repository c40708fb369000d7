"""Evaluate a model on a data set; scores are exact for any number of processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch

from elmo_framework.data.batch import to_device
from elmo_framework.data.data_loader import BatchSource
from elmo_framework.errors import RunError, allowed
from elmo_framework.kernels.backend import no_autocast, uses_cpu_code
from elmo_framework.metrics.metric import (
    Table,
    is_nearly_over_labels,
    is_of_one_type,
    is_over_labels,
)
from elmo_framework.model.head import Head
from elmo_framework.model.model import Model
from elmo_framework.training.interrupt import Interrupt, StopRequestedError
from elmo_framework.training.memory import memory_errors
from elmo_framework.training.process_group import SYNC_INTERVAL, ProcessGroup

_BETTER = {
    "-": (re.compile(r"(.*_)?(loss|perplexity|mse|mae)"), "smaller"),
    "+": (
        re.compile(
            r"accuracy\d*|(.*_)?(acc|em|exact|exact_match|f1|mcc|precision|recall|pearson|spearman)(-.*)?"
        ),
        "larger",
    ),
}
"""By sign: the scores that are better when smaller (`-`) or larger (`+`)."""


class Evaluator:
    """Evaluates a model on one data set.

    Args:
        source: the batches, in a fixed order, each example once.
        group: the processes among which the batches are divided.
        device: the device of the model.
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
        self.tables: Mapping[str, Table] = {}

    def scores(self, model: Model[Any], interrupt: Interrupt | None = None) -> dict[str, float]:
        """Score all batches of all processes; see `sums`. `tables` are then those of the model."""
        sums = self.sums(model, interrupt=interrupt)
        self.tables = model.tables(sums)
        return model.scores(sums)

    def sums(
        self,
        model: Model[Any],
        note: Callable[[Any, Any], None] | None = None,
        interrupt: Interrupt | None = None,
        count: Callable[[Any, Any], Mapping[str, float]] | None = None,
    ) -> Mapping[str, float]:
        """Return the sums, from which scores are computed, over all batches of all processes.

        Args:
            model: called without gradients and dropout; its carried state is saved and restored.
            note: called with each batch and its output, on the process that computes them.
            interrupt: requests of the user to stop.
            count: returns the sums of an output and its batch; by default `Model.sums`.

        Raises:
            StopRequestedError: a process was asked to stop; all raise it, between two batches.
        """
        sums: Counter[str] = Counter()
        with inference(model), model.fresh_state():
            for batch in self._batches(interrupt or Interrupt()):
                batch, output = self._output(model, batch)
                if note is not None:
                    note(batch, output)
                sums.update((count or model.sums)(output, batch))
        return self._group.sum(sums)

    def _batches(self, interrupt: Interrupt) -> Iterator[Any]:
        """Yield the batches of this process until all processes are done.

        Raises:
            StopRequestedError: one of them was asked to stop.
        """
        size = 1 if self._group.is_alone or uses_cpu_code(self._device) else SYNC_INTERVAL
        batches, is_done = self._source.batches(), False
        while True:
            # `gather` is collective: a process with fewer batches keeps taking part in it.
            statuses = self._group.gather((interrupt.signal_name, is_done))
            for signal_name, _ in statuses:
                if signal_name is not None:
                    raise StopRequestedError(signal_name)
            if all(is_done for _, is_done in statuses):
                return
            is_done = True
            for number, batch in enumerate(islice(batches, size), start=1):
                is_done = number < size
                yield batch

    def sanity_check(self, model: Model[Any]) -> None:
        """Make every batch and score the first, so that errors occur before training.

        With fewer batches than processes, there may be none for this process.

        Raises:
            DataError: a label was not seen in training.
        """
        batches = self._source.batches()
        first = next(batches, None)
        if first is None:
            return
        for _ in batches:  # not stored: together they may not fit into memory
            pass
        with inference(model), model.fresh_state():
            batch, output = self._output(model, first)
            model.scores(model.sums(output, batch))

    def _output(self, model: Model[Any], batch: Any) -> tuple[Any, Any]:
        """Return the batch on the device, and the output of the model."""
        with memory_errors(batch, step=None), autocast(self._device, self._precision):
            batch = to_device(batch, self._device)
            return batch, model(batch)


def require_score(metric: str, scores: Mapping[str, float]) -> None:
    """Check that a model has the score named by `trainer.validation_metric` (with its sign).

    Raises:
        RunError: `metric` is not among `scores`.
    """
    if metric[1:] not in scores:
        raise RunError(f"trainer.validation_metric: {_unknown_score(metric, scores)}")


def metric_problem(metric: str, model: Model[Any], labels: Collection[str] = ()) -> str | None:
    """Describe what is wrong with `trainer.validation_metric`; None if nothing is.

    Args:
        metric: with its sign.
        model: that has the score.
        labels: those of the data. Without any, the scores per label, such as `f1-measure-PER`, are
            unknown; these are accepted, apart from misspelled scores over all labels.
    """
    name, names = metric[1:], {"loss", *model.scores({})}
    if name not in names and is_of_one_type(name, names):
        of_labels = _scores_of_labels(name, model, labels) if labels else None
        if of_labels is None and not is_nearly_over_labels(name):
            of_labels = {name}
        names |= of_labels or set()
    if name not in names:
        return _unknown_score(metric, names)
    for sign, (pattern, size) in _BETTER.items():
        if pattern.fullmatch(name) and metric[0] != sign:
            return (
                f"{metric!r} would keep the worst weights: {size} is better; write {sign + name!r}"
            )
    return None


def _scores_of_labels(name: str, model: Model[Any], labels: Collection[str]) -> set[str] | None:
    """Return the names of scores of this kind by label; None if they do not follow from labels."""
    metrics = model.metrics.values() if isinstance(model, Head) else ()
    names = [
        metric.names_of_scores(labels)
        for metric in metrics
        if is_of_one_type(name, metric.score({}))
    ]
    known = [each for each in names if each is not None]
    if not names or len(known) < len(names):
        return None
    kind = name.partition("-")[0]
    return {
        each
        for listed in known
        for each in listed
        if each.partition("-")[0] == kind and not is_over_labels(each)
    }


def sign_of(metric: str) -> int:
    """Return 1 if a larger score is better, -1 if a smaller one is, and 0 if that is unknown."""
    signs = [sign for sign, (pattern, _) in _BETTER.items() if pattern.fullmatch(metric)]
    return 0 if not signs else 1 if signs[0] == "+" else -1


def _unknown_score(metric: str, names: Collection[str]) -> str:
    return f"{metric!r} is not a score of this model; {allowed(metric[1:], names)}"


@contextmanager
def autocast(device: torch.device, precision: str) -> Iterator[None]:
    """Run products in a precision.

    In bfloat16, products that stay in float32 use the faster TF32 on a GPU.

    Args:
        device: of the products.
        precision: `float32`, `bfloat16`, or `auto`: bfloat16 on a GPU that has it.
    """
    is_lower = precision == "bfloat16" or (precision == "auto" and _has_bfloat16(device))
    before = torch.get_float32_matmul_precision()
    with torch.autocast(device.type, torch.bfloat16) if is_lower else no_autocast(device):
        try:
            if is_lower and device.type == "cuda":
                torch.set_float32_matmul_precision("high")
            yield
        finally:
            if torch.get_float32_matmul_precision() != before:
                torch.set_float32_matmul_precision(before)


def _has_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


@contextmanager
def inference(model: Model[Any]) -> Iterator[None]:
    """Disable dropout and gradients inside the block."""
    was_training = model.training
    if was_training:  # both visit all modules, which takes as long as a small layer
        model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            model.train()


@contextmanager
def model_output(
    model: Model[Any], batch: Any, device: torch.device, precision: str
) -> Iterator[Any]:
    """Yield the output of a model for a batch, which it reads with a fresh carried state.

    Inside the block there are no gradients and no dropout.

    Args:
        model: on the device.
        batch: on the device.
        device: of the products.
        precision: of the products; see `autocast`.
    """
    with inference(model), model.fresh_state():
        with autocast(device, precision):
            output = model(batch)
        yield output
