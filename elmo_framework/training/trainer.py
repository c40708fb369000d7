"""The trainer of biLMs and task models."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from elmo_framework.data.batch import grouped, map_texts, pinned
from elmo_framework.data.data_loader import BatchSource
from elmo_framework.data.prefetch import PrefetchedSource
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.kernels.backend import uses_cpu_code
from elmo_framework.model.model import Model
from elmo_framework.model.part import parts_of
from elmo_framework.model.weights import load_weights
from elmo_framework.training.callback import Callback
from elmo_framework.training.checkpointer import Checkpointer, Snapshot
from elmo_framework.training.cuda_graph import RecordedUpdate
from elmo_framework.training.evaluator import Evaluator, require_score
from elmo_framework.training.interrupt import Interrupt, StopRequestedError
from elmo_framework.training.moving_average import AveragedWeights
from elmo_framework.training.options import GradientDescent, Interval
from elmo_framework.training.process_group import SYNC_INTERVAL, ProcessGroup
from elmo_framework.training.schedule import ScheduleState
from elmo_framework.training.seeds import generator_states, load_generator_states
from elmo_framework.training.state import StepReport, TrainingState
from elmo_framework.training.update import Update, UpdateResult

_ADVICE = "try a smaller learning rate or grad_norm"
_OUT_OF_PATIENCE = "early stopping: patience exhausted"


@dataclass(frozen=True)
class TrainingResult:
    """Result of a training: its final state and the reason why it ended."""

    progress: TrainingState
    reason: str


@dataclass(eq=False, repr=False, kw_only=True)
class Trainer:
    """Trains a model.

    Constructing a Trainer is a collective operation: every rank must do it.

    Args:
        options: the `trainer` block of the config.
        model: on its device already.
        optimizer: over the trained parameters.
        source: the training batches.
        evaluator: evaluates on the validation data; None without any.
        average: the moving average of the weights.
        group: the processes that train together.
        device: the device of the model.

    Attributes:
        update: computes an update.
    """

    options: GradientDescent
    model: Model[Any]
    optimizer: torch.optim.Optimizer
    source: BatchSource[Any]
    evaluator: Evaluator | None
    average: AveragedWeights
    group: ProcessGroup
    device: torch.device

    def __post_init__(self) -> None:
        self.progress = TrainingState()
        self.update = Update(
            self.options,
            self.model,
            self.optimizer,
            average=self.average,
            group=self.group,
            device=self.device,
        )
        self._recorded_update = RecordedUpdate(self.update)
        if self.device.type == "cuda":
            self.source = PrefetchedSource(self.source, self._prepared)
        self._rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self._started, self._seconds_before = time.monotonic(), 0.0
        self._evaluated_at = self._saved_at = self._update_began = 0.0
        self._end_reason: str | None = None

    def _prepared(self, batch: Any) -> Any:
        """Return a batch with its kept layers, in pinned memory."""
        for _, part in parts_of(self.model):
            batch = map_texts(batch, part.read_ahead)
        return pinned(batch)

    @property
    def num_steps(self) -> int | None:
        """Maximum number of updates; None when only `max_minutes` limits them.

        Where epochs differ in their number of batches, the current epoch counts.
        """
        epochs, limits = self.options.num_epochs, [self.options.num_steps]
        if epochs is not None:
            num_updates = epochs * self._num_updates(self.source.num_batches)
            limits.append(num_updates - self.progress.step_offset)
        return min((limit for limit in limits if limit is not None), default=None)

    def _num_updates(self, num_batches: int) -> int:
        return math.ceil(num_batches / self.options.num_gradient_accumulation_steps)

    def run(
        self, checkpointer: Checkpointer, callbacks: Sequence[Callback], interrupt: Interrupt
    ) -> TrainingResult:
        """Train to the end, from the last checkpoint if there is one.

        Args:
            checkpointer: reads the checkpoint to resume from and writes new ones.
            callbacks: called in this order at the start and after each update and evaluation.
            interrupt: requests of the user to stop.

        Raises:
            RunError: the loss is not finite, the validation metric is unknown, or the last
                checkpoint cannot be read or belongs to another model.
            StoppedError: the user requested a stop; a checkpoint has been written.
        """
        self._restore(checkpointer)
        for callback in callbacks:
            callback.start(self.progress)
        if self._is_evaluation_due_at_start:
            self._evaluate(checkpointer, callbacks, interrupt)
            self._save(checkpointer)
        for report in self.steps():
            for callback in callbacks:
                callback.step(report)
            is_evaluated = self._end_reason is not None or self._is_due(
                self.options.evaluate_every, report, since=self._evaluated_at
            )
            is_saved = is_evaluated or self._is_due(
                self.options.checkpointer.save_every, report, since=self._saved_at
            )
            if is_saved:
                self._check_finite(report)
                began = self._seconds()
                if is_evaluated:
                    self._evaluate(checkpointer, callbacks, interrupt)
                self._save(checkpointer)
                self._update_began += self._seconds() - began
            self._check_interrupt(interrupt, checkpointer, is_saved=is_saved)
        self._finish(checkpointer)
        assert self._end_reason is not None
        return TrainingResult(self.progress, self._end_reason)

    def steps(self) -> Iterator[StepReport]:
        """Yield a report after each update, until a limit is reached."""
        self.model.train()
        self._end_reason = self._limit_reached()
        self._update_began = self._seconds()
        while self._end_reason is None:
            for batches in grouped(
                self.source.batches(), self.options.num_gradient_accumulation_steps
            ):
                self._set_rates()
                result = self._recorded_update(batches, self.progress)
                self.progress = self.progress.after_step(
                    seconds=self._seconds(), is_epoch_end=self.source.is_at_epoch_end
                )
                self._end_reason = self._limit_reached()
                report = self._report(batches, result)
                self._update_began = self.progress.seconds
                yield report
                if self._is_out_of_patience():  # since the evaluation after this update
                    self._end_reason = _OUT_OF_PATIENCE
                if self._end_reason is not None:
                    return

    def _set_rates(self) -> None:
        progress, num_steps = self.progress, self.num_steps
        # A limit in updates does not depend on the number of processes.
        offset = 0 if num_steps == self.options.num_steps else progress.step_offset
        state = ScheduleState(
            step=progress.step + offset,
            num_steps=None if num_steps is None else num_steps + offset,
            epoch=progress.epochs,
            scores=progress.scores,
        )
        multiplier = self.options.learning_rate_scheduler.multiplier(state)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * multiplier

    def _report(self, batches: Sequence[Any], result: UpdateResult) -> StepReport:
        is_epoch_end = self.source.is_at_epoch_end
        report = StepReport(
            step=self.progress.step,
            epoch=self.progress.epochs - is_epoch_end,
            is_epoch_end=is_epoch_end,
            loss=result.loss,
            gradient_norm=result.gradient_norm,
            learning_rate=self.optimizer.param_groups[0]["lr"],
            num_tokens=self.group.rank.world_size * sum(batch.num_tokens for batch in batches),
            seconds=self.progress.seconds,
            update_seconds=self.progress.seconds - self._update_began,
            title=batches[-1].title,
            penalty=result.penalty,
        )
        if self._should_sync:
            self._check_finite(report)
        return report

    @property
    def _should_sync(self) -> bool:
        """Whether to synchronize with the GPU and the other processes after this update."""
        return uses_cpu_code(self.device) or self.progress.step % SYNC_INTERVAL == 0

    def _check_finite(self, report: StepReport) -> None:
        """Stop at a loss or a gradient that is not finite, before anything of it is saved."""
        for name, value in (("loss", report.loss), ("gradient norm", report.gradient_norm)):
            if not math.isfinite(value):
                raise RunError(
                    f"the {name} is {float(value)} at step {report.step} (epoch {report.epoch + 1})"
                    f" on this batch: {report.title}; {_ADVICE}"
                )

    def _evaluate(
        self, checkpointer: Checkpointer, callbacks: Sequence[Callback], interrupt: Interrupt
    ) -> None:
        """Score the model on the validation data and call the callbacks.

        Raises:
            StoppedError: the user requested a stop; the checkpoint records the due evaluation.
        """
        self._evaluated_at = self._seconds()
        if self.evaluator is None:
            return
        generators = generator_states()
        try:
            with self.average.in_place():
                scores = self.evaluator.scores(self.model, interrupt)
        except StopRequestedError as stop:
            load_generator_states(generators)
            self.progress = replace(self.progress, is_evaluation_due=True)
            self._save(checkpointer)
            self._finish(checkpointer)
            raise self._stopped(stop.signal_name) from None
        metric = self.options.validation_metric
        require_score(metric, scores)
        score = scores[metric[1:]]
        if not math.isfinite(score):
            is_of_metric = math.isnan(score) and math.isfinite(scores.get("loss", score))
            cause = "`score` of the metric returned it, as the loss is finite"
            raise RunError(
                f"{metric[1:]} on the validation data is {score} at step {self.progress.step}; "
                + (cause if is_of_metric else _ADVICE)
            )
        self._evaluated_at = self._seconds()
        self.progress = self.progress.after_evaluation(
            scores,
            metric=metric,
            seconds=self._evaluated_at,
            tables=self.evaluator.tables,
        )
        scores |= self.model.monitored_values()
        for callback in callbacks:
            callback.scores(self.progress, scores)

    def _is_due(self, interval: Interval, report: StepReport, *, since: float) -> bool:
        """Return whether an interval, begun at the time `since`, ends with this update."""
        if interval.steps is not None and report.step % interval.steps == 0:
            return True
        num_epochs = report.epoch + 1
        if interval.epochs and report.is_epoch_end and num_epochs % interval.epochs == 0:
            return True
        return interval.minutes is not None and self._has_passed(interval.minutes, since=since)

    @property
    def _is_evaluation_due_at_start(self) -> bool:
        progress = self.progress
        is_first = self.options.evaluate_at_start and not (progress.step or progress.scores)
        return self.evaluator is not None and (is_first or progress.is_evaluation_due)

    def _limit_reached(self) -> str | None:
        """Return why training ends here, if it does; called once per step: it reads the clock."""
        options, progress = self.options, self.progress
        if self._is_out_of_patience():
            return _OUT_OF_PATIENCE
        if options.num_steps is not None and progress.step >= options.num_steps:
            return "reached num_steps"
        if options.num_epochs is not None and progress.epochs >= options.num_epochs:
            return "reached num_epochs"
        minutes = options.max_minutes
        if minutes is not None and progress.step > 0 and self._has_passed(minutes, since=0.0):
            return "reached max_minutes"
        return None

    def _has_passed(self, minutes: float, *, since: float) -> bool:
        """Return whether time has passed, by the clock of the first process."""
        if not (self.group.is_alone or self._should_sync):
            return False
        return bool(self.group.first(self._seconds() - since >= 60 * minutes))

    def _is_out_of_patience(self) -> bool:
        patience = self.options.patience
        return patience is not None and (
            self.progress.evaluations_without_improvement >= max(1, patience)
        )

    def _check_interrupt(
        self, interrupt: Interrupt, checkpointer: Checkpointer, *, is_saved: bool
    ) -> None:
        if not (self.group.is_alone or self._should_sync):
            return
        signal_name = next(filter(None, self.group.gather(interrupt.signal_name)), None)
        if signal_name is not None:
            if not is_saved:
                self._save(checkpointer)
            self._finish(checkpointer)
            raise self._stopped(signal_name)

    def _stopped(self, signal_name: str) -> StoppedError:
        repeated = "; the evaluation is repeated then" if self.progress.is_evaluation_due else ""
        return StoppedError(
            f"Stopped by {signal_name} after step {self.progress.step}; checkpoint saved. "
            f"Resume with --recover{repeated}."
        )

    def _seconds(self) -> float:
        """Return the training time, including that before each resumption."""
        return self._seconds_before + time.monotonic() - self._started

    def _save(self, checkpointer: Checkpointer) -> None:
        self._saved_at = self._seconds()
        checkpointer.save(
            Snapshot(
                progress=self.progress,
                weights=self.model.state_dict(),
                average=self.average.state_dict(),
                optimizer=self.optimizer.state_dict(),
                local={
                    "generators": generator_states(),
                    "source": self.source.state_dict(),
                    "carried": self.model.carried_state(),
                },
                num_processes=self.group.rank.world_size,
            )
        )

    def _finish(self, checkpointer: Checkpointer) -> None:
        """Wait until the first process has written the last checkpoint, which others may read."""
        checkpointer.finish()
        self.group.wait()

    def _restore(self, checkpointer: Checkpointer) -> None:
        snapshot = checkpointer.restore()
        if snapshot is None:
            return
        self.progress = snapshot.progress
        self._seconds_before = self._saved_at = snapshot.progress.seconds
        self._evaluated_at = snapshot.progress.last_evaluation
        source = str(checkpointer.weights_file(snapshot.progress.step))
        load_weights(self.model, snapshot.weights, source=source)
        self.average.load_state_dict(snapshot.average)
        self.optimizer.load_state_dict(dict(snapshot.optimizer))
        local = snapshot.local
        if snapshot.num_processes != self.group.rank.world_size:
            # The other processes had other rows: carried states and generators start over.
            self.source.load_state_of_others(local["source"], snapshot.num_processes)
            self.progress = replace(self.progress, step_offset=self._step_offset())
            return
        self.source.load_state_dict(local["source"])
        self.model.load_carried_state(
            {name: state.to(self.device) for name, state in local["carried"].items()}
        )
        load_generator_states(local["generators"])

    def _step_offset(self) -> int:
        """Return how many more updates this number of processes needs to reach this position."""
        per_epoch = self._num_updates(self.source.num_batches)
        left_in_epoch = self._num_updates(self.source.num_left) or per_epoch
        return (self.progress.epochs + 1) * per_epoch - left_in_epoch - self.progress.step
