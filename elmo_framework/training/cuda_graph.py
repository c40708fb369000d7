"""Updates recorded as a CUDA graph: the GPU repeats one without a launch from Python.

An update of a biLM launches thousands of small operations, each of which takes the CPU longer than
the GPU. A graph is launched as a whole. Its operations read and write the same memory each time, so
all that differs between updates is copied there first: the batch, the carried state and the
learning rates. Of several processes, each records its passes and its step separately, and gradients
are averaged in between: what is exchanged must not depend on which process has recorded what.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeAlias, final

import torch
from torch import Tensor

from elmo_framework.data.batch import StaticBatch, to_device
from elmo_framework.errors import RunError
from elmo_framework.training.sparse_gradients import RowAdagrad
from elmo_framework.training.state import TrainingState
from elmo_framework.training.update import Update, UpdateResult

_LOG = logging.getLogger(__name__)

_SWITCH = "ELMO_CUDA_GRAPHS"
"""The environment variable that switches recordings off, with the value 0."""

_NUM_FIRST = 3
"""Updates before the recording, in which libraries choose algorithms and allocate memory."""

Outputs: TypeAlias = tuple[Tensor | None, ...]
"""The result of a recorded function: an `UpdateResult`, or of a part of an update."""


class Recording(Protocol):
    """A recorded function.

    Attributes:
        outputs: the tensors that each replay overwrites.
    """

    outputs: Outputs

    def replay(self) -> None:
        """Repeat the operations on the same memory."""


_Record: TypeAlias = Callable[[Callable[[], Outputs]], Recording]


@final
class _CudaGraphs:
    """Records functions as CUDA graphs that share their memory.

    One is replayed at a time, and its outputs are copied before the next one overwrites them.
    """

    def __init__(self) -> None:
        self._memory: Any = None

    def __call__(self, function: Callable[[], Outputs]) -> Recording:
        self._memory = self._memory or torch.cuda.graph_pool_handle()
        return _CudaGraph(function, self._memory)


@final
class _CudaGraph:
    def __init__(self, function: Callable[[], Outputs], memory: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # Other threads, such as the one that writes checkpoints, may use the device meanwhile.
        recording = torch.cuda.graph(self._graph, pool=memory, capture_error_mode="thread_local")
        failure: Exception | None = None
        # PyTorch stays on the stream of a recording that fails.
        with torch.cuda.stream(torch.cuda.current_stream()):
            try:
                with recording:
                    try:
                        self.outputs = function()
                    except (RuntimeError, RunError) as error:
                        failure = error  # the recording ends as usual, if it can
            except RuntimeError as error:
                _end_recording_of_random_numbers()
                failure = failure or error
        if failure is not None:
            raise failure

    def replay(self) -> None:
        self._graph.replay()


def _end_recording_of_random_numbers() -> None:
    """Replace the state of the generator, which PyTorch leaves as in a recording that fails."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    generator.graphsafe_set_state(generator.clone_state())


@final
class RecordedUpdate:
    """An update that is recorded where that is possible, and otherwise computed as usual.

    Args:
        update: computes it.
        record: records a function without computing it; None for a CUDA graph on a GPU.
    """

    def __init__(self, update: Update, record: _Record | None = None) -> None:
        is_allowed = os.environ.get(_SWITCH, "1") != "0"
        if record is None and update.device.type == "cuda" and is_allowed:
            record = _CudaGraphs()
        self._update, self._record = update, record if _is_recordable(update) else None
        if self._record is not None and not update.group.is_alone:
            update.average_afterwards()
        self._num_seen: dict[Hashable, int] = {}
        self._recordings: dict[Hashable, _RecordedBatch] = {}

    @property
    def num_recorded(self) -> int:
        """The number of forms of batches whose update is recorded."""
        return len(self._recordings)

    def __call__(self, batches: Sequence[Any], progress: TrainingState) -> UpdateResult:
        """Update the parameters; see `Update`."""
        first = batches[0]
        if self._record is None or not isinstance(first, StaticBatch):
            return self._update(batches, progress)
        batch = to_device(first, self._update.device)
        form = batch.form
        if form is None:
            return self._update([batch], progress)
        recorded = self._recordings.get(form) or self._recorded(form, batch, progress)
        return self._update([batch], progress) if recorded is None else recorded(batch)

    def _recorded(
        self, form: Hashable, batch: StaticBatch, progress: TrainingState
    ) -> _RecordedBatch | None:
        self._num_seen[form] = self._num_seen.get(form, 0) + 1
        if self._num_seen[form] <= _NUM_FIRST:
            return None
        assert self._record is not None
        state = self._update.model.carried_state()
        try:
            recorded = _RecordedBatch(self._update, batch, progress, self._record)
        except (RuntimeError, RunError) as error:  # of CUDA; of memory
            reason = str(error).partition("\n")[0]
            _LOG.warning(
                "updates are not recorded as a CUDA graph, which is slower: %s; %s=0 records none",
                reason,
                _SWITCH,
            )
            self._update.optimizer.zero_grad(set_to_none=True)
            self._update.model.load_carried_state(state)
            self._record = None
            self._recordings.clear()  # their memory is needed now
            return None
        self._recordings[form] = recorded
        return recorded


def _is_recordable(update: Update) -> bool:
    """Return whether updates launch the same operations as long as batches have the same form."""
    options = update.options
    return (
        update.model.has_static_steps
        and options.num_gradient_accumulation_steps == 1
        and options.unfreezing is None
        and isinstance(update.optimizer, RowAdagrad)
    )


class _RecordedBatch:
    """A recorded update for batches of one form."""

    def __init__(
        self,
        update: Update,
        batch: StaticBatch,
        progress: TrainingState,
        record: _Record,
    ) -> None:
        assert batch.numbers is not None
        self._update, self._progress = update, progress
        self._model, self._groups = update.model, update.optimizer.param_groups
        self._numbers = batch.numbers.clone()
        self._rates = [torch.empty((), device=update.device) for _ in self._groups]
        self._state = {k: value.clone() for k, value in self._model.carried_state().items()}

        def backpropagated() -> Outputs:
            self._model.load_carried_state(self._state)
            batches = [batch.unpacked(self._numbers)]
            if update.group.is_alone:
                outputs: Outputs = update(batches, progress)
            else:
                outputs = (*update.backpropagate(batches, progress), *update.gradients())
            for name, value in self._model.carried_state().items():
                self._state[name].copy_(value)
            return outputs

        rates = [group["lr"] for group in self._groups]
        for group, rate in zip(self._groups, self._rates, strict=True):
            group["lr"] = rate
        try:
            self._passes = record(backpropagated)
            self._step = None if update.group.is_alone else record(self._applied)
        finally:
            for group, number in zip(self._groups, rates, strict=True):
                group["lr"] = number
        self._model.load_carried_state(self._state)

    def __call__(self, batch: StaticBatch) -> UpdateResult:
        assert batch.numbers is not None
        self._numbers.copy_(batch.numbers)
        for group, rate in zip(self._groups, self._rates, strict=True):
            rate.fill_(group["lr"])
        for name, value in self._model.carried_state().items():
            if value is not self._state[name]:  # since an update of another form, or a resumption
                self._state[name].copy_(value)
        self._model.load_carried_state(self._state)
        self._passes.replay()
        if self._step is None:
            loss, gradient_norm, penalty = self._passes.outputs
        else:
            loss, penalty, *gradients = self._passes.outputs
            self._update.average(gradients)
            self._step.replay()
            (gradient_norm,) = self._step.outputs
        assert loss is not None
        assert gradient_norm is not None
        return UpdateResult(
            loss.clone(), gradient_norm.clone(), None if penalty is None else penalty.clone()
        )

    def _applied(self) -> Outputs:
        """Apply the averaged gradients, which are where the recorded passes leave them."""
        _, _, *gradients = self._passes.outputs
        self._update.set_gradients(gradients)
        return (self._update.apply_gradients(self._progress),)
