"""The code for accelerators, run by a simulated device: what waits, what is copied, what it costs.

Numbers are compared with the code for the CPU, which other tests compare with references.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_framework.config.load import Config
from elmo_framework.experiment.assembly import Assembly
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.train import build_trainer
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn import recurrent
from elmo_framework.nn.elmo_lstm import ProjectedLstm
from elmo_framework.training import trainer as trainer_module
from elmo_framework.training.process_group import ProcessGroup
from elmo_framework.training.seeds import seed_everything
from elmo_framework.training.trainer import Trainer
from tests.experiment import test_coreference_configs as coreference
from tests.experiment import test_squad_configs as squad
from tests.experiment import test_srl as srl
from tests.experiment import test_tagging_configs as tagging
from tests.experiment import test_text_configs as texts
from tests.experiment.conftest import NER
from tests.experiment.jobs import PRETRAINING, ROOT, tagging_with
from tests.simulated_device import DEVICE, Calls, simulated_device

CPU = torch.device("cpu")
BILM = "experiments/pretrain/original.jsonnet"
STRUCTURE = {
    "trainer.precision": "float32",
    "model.token_encoder.filters": [[width, 4] for width in range(1, 8)],
}
"""As many convolutions as the original has."""

NO_DROPOUT = {"model.dropout": 0.0, "model.context_layers.dropout": 0.0}
NUM_CELLS = 2 * 2 * PRETRAINING["data_loader.unroll_steps"]
"""Steps of an LSTM in an update: two directions, two layers."""

CALLS_PER_CELL, FURTHER_CALLS = 8, 340

SQUAD_WORDS = {"model.embedder.token_embedders.tokens.pretrained_file": None}
HEADS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "tagging": ("ner/baseline", tagging.SMALL),
    "entailment": ("snli/baseline", texts.ENTAILMENT),
    "classification": ("sst/baseline", texts.SENTIMENT),
    "srl": ("srl/baseline", srl.LABELING),
    "question answering": ("squad/baseline", {**squad.SELF_ATTENTION, **SQUAD_WORDS}),
    "bidaf": ("squad/bidaf", {**squad.BIDAF, **SQUAD_WORDS}),
    "coreference": ("coreference/baseline", coreference.SMALL),
}
WAITS = {"coreference": {"tasks/coreference/mentions.py:MentionRanker._selected": 1}}
"""Where a training step of a head waits for the device, and how often.

A document waits for the order of its spans: whether a span crosses those selected before is
decided one by one.
"""


def trainer_of(
    config: str,
    changes: Mapping[str, Any],
    device: torch.device,
    group: ProcessGroup | None = None,
) -> Trainer:
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    _, experiment = check_config(Config.load(ROOT / config, overrides=overrides)).unwrap()
    trainer = build_trainer(Assembly.build(experiment, device=device, group=group), evaluator=None)
    seed_everything(1)
    return trainer


def bilm_trainer(
    device: torch.device,
    changes: Mapping[str, Any] | None = None,
    group: ProcessGroup | None = None,
) -> Trainer:
    return trainer_of(BILM, {**PRETRAINING, **STRUCTURE, **(changes or {})}, device, group)


def recorded(trainer: Trainer, calls: Calls, *, num_steps: int) -> Iterator[Calls]:
    """Yield what each update has recorded, after the first, which fills caches."""
    steps = trainer.steps()
    next(steps)
    for _ in range(num_steps):
        calls.clear()
        next(steps)
        yield calls


@pytest.mark.parametrize(
    ("changes", "num_batches"),
    [
        ({}, 1),
        ({"model.num_samples": None}, 1),
        ({"trainer.num_gradient_accumulation_steps": 2}, 2),
        ({"trainer.grad_clipping": 0.1}, 1),
    ],
    ids=["sampled", "full", "accumulated", "clipped values"],
)
def test_a_step_of_a_bilm_waits_for_nothing(changes: Mapping[str, Any], num_batches: int) -> None:
    with simulated_device() as calls:
        for update in recorded(bilm_trainer(DEVICE, changes), calls, num_steps=2):
            assert not update.waits
            assert len(update.copies) == num_batches  # one for each batch
            assert len(update.calls) <= num_batches * (NUM_CELLS * CALLS_PER_CELL + FURTHER_CALLS)


@pytest.mark.parametrize(
    ("type_", "sizes"),
    [
        ("gru", {"cell_size": 8}),
        ("linear_recurrence", {"cell_size": 8}),
        ("transformer", {"num_heads": 2, "head_dim": 4, "feedforward_dim": 8, "memory_size": 9}),
    ],
)
def test_a_step_of_other_context_layers_waits_for_nothing(
    type_: str, sizes: Mapping[str, Any]
) -> None:
    layers = {"type": type_, "num_layers": 2, **sizes}
    with simulated_device() as calls:
        trainer = bilm_trainer(DEVICE, {"model.context_layers": layers})
        for update in recorded(trainer, calls, num_steps=2):
            assert not update.waits
            assert len(update.copies) == 1


def test_batches_of_a_bilm_launch_the_same_calls() -> None:
    with simulated_device() as calls:
        updates = recorded(bilm_trainer(DEVICE), calls, num_steps=3)
        first, *others = [[*update.calls] for update in updates]
        assert others == [first, first]


def test_the_device_computes_the_losses_of_the_cpu() -> None:
    with simulated_device():
        steps = islice(bilm_trainer(DEVICE).steps(), 5)
        on_device = [float(report.loss.cpu()) for report in steps]
    on_cpu = [float(report.loss) for report in islice(bilm_trainer(CPU).steps(), 5)]
    assert on_device == pytest.approx(on_cpu, rel=1e-5)


@pytest.mark.parametrize("task", HEADS)
def test_a_head_waits_only_where_it_must(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, changes = HEADS[task]
    monkeypatch.setattr(recurrent, "_read_direction", _one_call)
    with simulated_device() as calls:
        trainer = trainer_of(f"experiments/{config}.jsonnet", changes, DEVICE)
        (update,) = recorded(trainer, calls, num_steps=1)
        assert Counter(wait.place for wait in update.waits) == WAITS.get(task, {})


def test_a_frozen_bilm_beside_a_head_waits_for_nothing(
    bilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent, "_read_direction", _one_call)
    with simulated_device() as calls:
        trainer = trainer_of(NER, tagging_with(bilm), DEVICE)
        (update,) = recorded(trainer, calls, num_steps=1)
        assert not update.waits


def _one_call(network: nn.LSTM | nn.GRU, weights: list[Tensor], rows: Tensor) -> Tensor:
    """Stand in for cuDNN, which reads rows in one call; PyTorch's own loop takes seconds here."""
    return (rows @ weights[0].T)[:, :, : network.hidden_size]


@pytest.mark.parametrize("changes", [{}, {"model.num_samples": None}], ids=["sampled", "full"])
def test_compiled_and_plain_code_agree_over_ten_updates(changes: Mapping[str, Any]) -> None:
    weights = []
    for code in (nullcontext, accelerator_code):
        with code():
            trainer = bilm_trainer(CPU, changes)
            for _ in islice(trainer.steps(), 10):
                pass
            weights.append(trainer.model.state_dict())
    for name, expected in weights[0].items():
        torch.testing.assert_close(weights[1][name], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("factor", "bias"), [(1, 0), (4, 0), (1, 6)], ids=["usual", "large weights", "saturated gates"]
)
def test_bfloat16_gradients_are_near_those_of_float32(factor: float, bias: float) -> None:
    """In bfloat16 1 - f is 0 for a forget gate f above 0.998."""
    expected, found = (_gradients(each, factor, bias) for each in ("float32", "bfloat16"))
    norm = torch.stack([each.norm() for each in expected]).norm()
    error = torch.stack([(a - b).norm() for a, b in zip(found, expected, strict=True)]).norm()
    assert 1e-5 < error / norm < 1e-2


def _gradients(precision: str, factor: float, bias: float) -> list[Tensor]:
    """Return the gradients of the first update, with other weights and biases of the LSTMs."""
    larger = {
        "model.token_encoder.filters": PRETRAINING["model.token_encoder.filters"],
        "model.token_encoder.projection_dim": 64,
        "model.context_layers.cell_size": 256,
        "model.context_layers.projection_dim": 64,
    }
    changes = {**NO_DROPOUT, **larger, "trainer.precision": precision}
    with accelerator_code():
        trainer = bilm_trainer(CPU, changes)
        for module in trainer.model.modules():
            if isinstance(module, ProjectedLstm):
                for weight in (module.input_weight, module.recurrent_weight):
                    weight.data *= factor
                module.bias.data += bias
        seed_everything(2)
        trainer.update.backpropagate([next(trainer.source.batches())], trainer.progress)
    gradients = [parameter.grad for parameter in trainer.model.parameters()]
    return [each.to_dense() for each in gradients if each is not None]


def test_kept_layers_are_read_while_the_model_computes(
    bilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = tagging_with(bilm, **{"model.embedder.token_embedders.elmo.cache": "memory"})
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    _, experiment = check_config(Config.load(ROOT / NER, overrides=overrides)).unwrap()
    assembly = Assembly.build(experiment, device=CPU)
    assembly.precompute()
    on_cpu = build_trainer(assembly, evaluator=None)
    monkeypatch.setattr(trainer_module, "pinned", lambda batch: batch)
    on_gpu = replace(on_cpu, device=torch.device("cuda"), source=assembly.training_source())
    of_cpu, of_gpu = (next(iter(each.source.batches())) for each in (on_cpu, on_gpu))
    assert of_cpu.text.words == of_gpu.text.words
    (layers,) = of_gpu.text.read_ahead.values()
    assert layers.shape[1] == len(of_gpu.text.words)
    with torch.no_grad():
        assert on_cpu.model.eval()(of_gpu).loss == on_cpu.model(of_cpu).loss
