"""Training starts from an earlier run, or from the files of a biLM."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_framework.errors import RunError
from elmo_framework.experiment.experiment import InitFrom
from elmo_framework.experiment.init_from import load_initial_weights
from tests.experiment.jobs import PRETRAINING, evaluations, train
from tests.unit.training.toy import ToyModel

PRETRAIN = "experiments/pretrain/demo.jsonnet"


def going_on(path: Path, *, reset: bool = False, **changes: Any) -> dict[str, Any]:
    """A short pretraining that goes on from a run or a biLM, on other text."""
    return {
        **PRETRAINING,
        "train_data_path": PRETRAINING["validation_data_path"],
        "init_from": {"path": str(path), "reset_optimizer": reset},
        "trainer.num_steps": 3,
        "trainer.evaluate_at_start": True,
        **changes,
    }


def optimizer_steps(directory: Path) -> set[float]:
    """How many updates the optimizer has counted at the last checkpoint."""
    last = max(directory.glob("checkpoints/step-*"))
    state = torch.load(last / "training.pt", weights_only=True)["state"]
    return {float(held["step"]) for held in state.values()}


def best(directory: Path, name: str) -> float:
    found: float = json.loads((directory / "metrics.json").read_text())[f"best_{name}"]
    return found


def test_init_from_continues_from_the_best_weights_of_a_run(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(PRETRAIN, tmp_path / "run", going_on(bilm)) == 0
    start, *_, end = evaluations(tmp_path / "run")
    assert start["step"] == 0
    assert start["perplexity"] == pytest.approx(best(bilm, "validation_perplexity"))
    assert optimizer_steps(tmp_path / "run") == {best(bilm, "step") + end["step"]}
    kept, taken = (run / "bilm/vocabulary.txt" for run in (bilm, tmp_path / "run"))
    assert taken.read_text() == kept.read_text()
    expected = f"training starts from the weights of {bilm}, with the state of its optimizer\n"
    assert expected in capsys.readouterr().err
    assert train(PRETRAIN, tmp_path / "run", going_on(bilm), "--recover") == 0
    assert evaluations(tmp_path / "run")[-1] == end


def test_resume_from_a_replaced_checkpoint_loads_no_initial_weights(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(PRETRAIN, run, going_on(bilm)) == 0
    for folder in (run / "checkpoints").glob("step-*"):  # killed between two renames
        folder.rename(folder.with_name(f".{folder.name}.replaced"))
    capsys.readouterr()
    assert train(PRETRAIN, run, going_on(bilm), "--recover") == 0
    assert "training starts from the weights of" not in capsys.readouterr().err


def test_init_from_can_reset_the_optimizer(bilm: Path, tmp_path: Path) -> None:
    assert train(PRETRAIN, tmp_path / "run", going_on(bilm, reset=True)) == 0
    assert optimizer_steps(tmp_path / "run") == {evaluations(tmp_path / "run")[-1]["step"]}


def test_a_bilm_with_its_softmax_is_enough(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(bilm / "bilm", tmp_path / "files")
    assert train(PRETRAIN, tmp_path / "run", going_on(tmp_path / "files")) == 0
    start = evaluations(tmp_path / "run")[0]
    assert start["perplexity"] == pytest.approx(best(bilm, "validation_perplexity"), rel=1e-5)
    assert "with a new optimizer" in capsys.readouterr().err


def test_a_bilm_alone_takes_the_words_of_the_text(bilm: Path, tmp_path: Path) -> None:
    shutil.copytree(bilm / "bilm", tmp_path / "files")
    for name in ("softmax.safetensors", "vocabulary.txt"):
        (tmp_path / "files" / name).unlink()
    assert train(PRETRAIN, tmp_path / "run", going_on(tmp_path / "files")) == 0
    start = evaluations(tmp_path / "run")[0]
    assert start["perplexity"] > 2 * best(bilm, "validation_perplexity")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"trainer.optimizer": {"type": "adagrad"}},
            "was trained with the optimizer 'adam', and now it is 'adagrad'; take the same, or set "
            "init_from.reset_optimizer to true",
        ),
        (
            {"model.context_layers.cell_size": 13},
            "these weights are of another model than the configuration and the vocabulary make: "
            "of another shape: bilm.context_layers",
        ),
        ({"trainer.no_grad": ["token_encoder"]}, "trained other parameters; set init_from.reset"),
    ],
)
def test_init_from_refuses_an_incompatible_run(
    bilm: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    message: str,
) -> None:
    assert train(PRETRAIN, tmp_path / "run", going_on(bilm, **changes)) == 2
    error = capsys.readouterr().err
    assert f"init_from: the run {bilm}" in error
    assert message in error


def test_models_other_than_bilms_are_initialized_from_runs_only(bilm: Path) -> None:
    with pytest.raises(RunError, match="a ToyModel can be initialized from a run only"):
        load_initial_weights(InitFrom(bilm / "bilm"), ToyModel())


def test_init_from_refuses_a_run_without_weights(bilm: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(bilm / "filled_config.json", run)
    with pytest.raises(RunError) as caught:
        load_initial_weights(InitFrom(run), ToyModel())
    assert str(caught.value) == (
        f"init_from: the run {run} has no weights: neither weights.safetensors nor a checkpoint"
    )
