"""Updates that a GPU would repeat as a CUDA graph, repeated by a function on a simulated device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.training.checkpointer import Checkpointer
from elmo_framework.training.cuda_graph import Outputs, RecordedUpdate
from elmo_framework.training.process_group import ProcessGroup, process_group
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.trainer import Trainer
from tests.experiment import test_accelerator as accelerator
from tests.experiment import test_tagging_configs as tagging
from tests.experiment.test_accelerator import CPU, NO_DROPOUT, trainer_of
from tests.simulated_device import DEVICE, simulated_device
from tests.two_processes import in_two_processes
from tests.unit.training.test_cuda_graph import has_node

CHANGING = {
    "model.state_reset_rate": 0.3,
    "trainer.learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 20},
    "trainer.moving_average": {"decay": 0.9},
    "trainer.grad_clipping": 0.01,
}
"""What differs between updates besides the batch."""


def bilm_trainer(
    device: torch.device,
    changes: Mapping[str, Any] | None = None,
    group: ProcessGroup | None = None,
) -> Trainer:
    changes = {"data_loader.unroll_steps": 3, **(changes or {})}
    return accelerator.bilm_trainer(device, changes, group)


class Recorder:
    """Stands in for CUDA graphs: a recording computes nothing until it is replayed.

    A replay runs no Python: it uses the learning rates that the optimizer had when it was recorded,
    and the model refers to the same state after it as before.

    Attributes:
        trainer: whose updates are recorded.
        num_recorded: functions.
        num_replays: of all of them.
        is_failing: whether the GPU has no memory for the next recording.
    """

    trainer: Trainer

    def __init__(self) -> None:
        self.num_recorded = self.num_replays = 0
        self.is_failing = False

    def __call__(self, function: Callable[[], Outputs]) -> Recorder.Recording:
        if self.is_failing:
            with patch.object(self.trainer.update, "_loss", _out_of_memory):
                function()
        # CUDA cannot record work for the stream of such a node.
        assert not any(map(has_node, self.trainer.model.parameters()))
        self.num_recorded += 1
        return Recorder.Recording(self, function)

    class Recording:
        outputs: Outputs

        def __init__(self, recorder: Recorder, function: Callable[[], Outputs]) -> None:
            self._recorder, self._function = recorder, function
            self._rates = self._set_rates(None)

        def replay(self) -> None:
            self._recorder.num_replays += 1
            model = self._recorder.trainer.model
            state, rates = model.carried_state(), self._set_rates(self._rates)
            outputs = self._function()
            self._set_rates(rates)
            model.load_carried_state(state)
            if not hasattr(self, "outputs"):
                self.outputs = outputs
            for own, other in zip(self.outputs, outputs, strict=True):
                if own is not None:
                    own.copy_(other)

        def _set_rates(self, rates: list[Any] | None) -> list[Any]:
            """Set the learning rates of all groups; return those before."""
            groups = self._recorder.trainer.optimizer.param_groups
            before = [group["lr"] for group in groups]
            for group, rate in zip(groups, rates or before, strict=True):
                group["lr"] = rate
            return before


def _out_of_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def trained(trainer: Trainer, num_steps: int) -> tuple[list[float], Mapping[str, Tensor]]:
    """Return the losses of some updates, and the weights and their averages after them."""
    losses = []
    for report in islice(trainer.steps(), num_steps):
        losses.append(report.loss)
        if report.step == 7:  # an evaluation starts from other states and returns to these
            with trainer.model.fresh_state():
                assert not trainer.model.carried_state()
    weights = {**trainer.model.state_dict(), **trainer.model.carried_state()}
    averages = {f"average of {name}": each for name, each in trainer.average.state_dict().items()}
    cpu = {name: each.cpu() for name, each in {**weights, **averages}.items()}
    return [float(loss.cpu()) for loss in losses], cpu


def recording(trainer: Trainer, record: Callable[..., Any]) -> Trainer:
    if isinstance(record, Recorder):
        record.trainer = trainer
    trainer._recorded_update = RecordedUpdate(trainer.update, record)
    return trainer


@pytest.mark.parametrize("changes", [{}, CHANGING], ids=["constant", "changing"])
def test_replays_equal_updates(changes: Mapping[str, Any]) -> None:
    recorder = Recorder()
    with simulated_device():
        losses, weights = trained(bilm_trainer(DEVICE, changes), 10)
        replayed, others = trained(recording(bilm_trainer(DEVICE, changes), recorder), 10)
    assert (recorder.num_recorded, recorder.num_replays) == (1, 7)
    # A rate on the device is a float32; otherwise it is a float64.
    assert replayed == pytest.approx(losses, rel=1e-5)
    for name, expected in weights.items():
        torch.testing.assert_close(others[name], expected, rtol=1e-5, atol=1e-5)


def test_training_resumes_from_a_checkpoint_between_replays(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, keep=1, group=ProcessGroup())
    with accelerator_code():
        whole, begun, resumed = (
            recording(bilm_trainer(CPU, CHANGING), Recorder()) for _ in range(3)
        )
        seed_everything(1)
        expected = trained(whole, 12)
        seed_everything(1)
        losses, _ = trained(begun, 6)
        begun._save(checkpointer)
        resumed._restore(checkpointer)
        others, weights = trained(resumed, 6)
    assert resumed._recorded_update.num_recorded == 1
    assert [*losses, *others] == pytest.approx(expected[0], rel=1e-5)
    for name, tensor in expected[1].items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-5, atol=1e-5)


def of_two_processes(rank: int, directory: Path, changes: Mapping[str, Any]) -> None:
    """Save losses and weights of updates with and without recordings."""
    with accelerator_code(), process_group(CPU, advice="") as group:
        for is_recorded in (False, True):
            trainer, recorder = bilm_trainer(CPU, changes, group), Recorder()
            if is_recorded:
                recording(trainer, recorder)
            steps, losses = trainer.steps(), []
            for number in range(8):
                if is_recorded and number == 1 and rank:  # so this process records later
                    trainer._recorded_update._num_seen.clear()
                losses.append(float(next(steps).loss))
            counts = recorder.num_recorded, recorder.num_replays
            torch.save(
                (losses, trainer.model.state_dict(), counts), directory / f"{rank}-{is_recorded}.pt"
            )


@pytest.mark.parametrize("reduce_dtype", ["float32", "bfloat16"])
def test_processes_average_gradients_between_recordings(reduce_dtype: str, tmp_path: Path) -> None:
    changes = {**NO_DROPOUT, "trainer.reduce_dtype": reduce_dtype}
    work = partial(of_two_processes, directory=tmp_path, changes=changes)
    assert in_two_processes(work) == [0, 0]
    for rank in range(2):
        plain, recorded = (
            torch.load(tmp_path / f"{rank}-{is_recorded}.pt", weights_only=True)
            for is_recorded in (False, True)
        )
        num_replays = 2 * (5 - rank)
        assert (plain[2], recorded[2]) == ((0, 0), (2, num_replays))
        assert recorded[0] == pytest.approx(plain[0], rel=1e-5)
        for name, expected in plain[1].items():
            torch.testing.assert_close(recorded[1][name], expected, rtol=1e-5, atol=1e-5)


def test_an_update_of_another_form_is_computed_between_replays() -> None:
    recorder, results = Recorder(), []
    with simulated_device():
        for record in (None, recorder):
            trainer = bilm_trainer(DEVICE)
            if record is not None:
                recording(trainer, record)
            steps = trainer.steps()
            list(islice(steps, 6))
            batch = next(trainer.source.batches())
            batch.forward.lengths[:] -= 1  # the end of each row is padding
            trainer._recorded_update([batch], trainer.progress)
            list(islice(steps, 2))
            weights = trainer.model.state_dict()
            results.append({name: each.cpu() for name, each in weights.items()})
    assert recorder.num_replays == 5
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, rtol=1e-5, atol=1e-5)


def test_without_a_recording_training_continues_as_usual(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Callable[[], Outputs]) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    with simulated_device():
        losses, _ = trained(bilm_trainer(DEVICE), 6)
        others, _ = trained(recording(bilm_trainer(DEVICE), fail), 6)
    assert others == losses
    assert caplog.text.count("not recorded as a CUDA graph, which is slower: operation not") == 1


def test_without_memory_for_a_recording_all_are_released(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder, results = Recorder(), []
    with simulated_device():
        for record in (None, recorder):
            trainer = bilm_trainer(DEVICE)
            if record is not None:
                recording(trainer, record)
            list(islice(trainer.steps(), 5))
            recorder.is_failing = True
            batch = next(trainer.source.batches())
            batch = replace(batch, table=copy(batch.table))  # of another form
            for _ in range(5):
                trainer._recorded_update([batch], trainer.progress)
            recorder.is_failing = False
            weights = trainer.model.state_dict()
            results.append({name: each.cpu() for name, each in weights.items()})
    assert (recorder.num_recorded, recorder.num_replays) == (1, 2)
    assert trainer._recorded_update.num_recorded == 0
    assert caplog.text.count("which is slower: step 6, on a batch of") == 1
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"trainer.num_gradient_accumulation_steps": 2},
        {"trainer.optimizer": {"type": "adam"}},
        {"trainer.unfreezing": {}},
    ],
    ids=["accumulation", "another optimizer", "unfreezing"],
)
def test_some_updates_are_never_recorded(changes: Mapping[str, Any]) -> None:
    recorder = Recorder()
    with simulated_device():
        trained(recording(bilm_trainer(DEVICE, changes), recorder), 6)
    assert recorder.num_recorded == 0


def test_updates_of_heads_and_on_the_cpu_are_not_recorded() -> None:
    recorder = Recorder()
    for trainer in (
        bilm_trainer(CPU),
        trainer_of("experiments/ner/baseline.jsonnet", tagging.SMALL, CPU),
    ):
        list(islice(recording(trainer, recorder).steps(), 5))
    assert recorder.num_recorded == 0
