"""The learning-rate range test: its rates, and what it reads from losses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import final

import numpy as np
import pytest

from elmo_framework import components
from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.experiment import learning_rates
from elmo_framework.experiment.check import check_config
from elmo_framework.experiment.learning_rates import RateLosses, RateRange, _end, rate_losses
from elmo_framework.experiment.train import train_assembly
from elmo_framework.io import files
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepReport
from tests.experiment.jobs import DATA

CONFIG = {
    "dataset_reader": {"type": "conll2003"},
    "train_data_path": str(DATA / "train.txt"),
    "validation_data_path": str(DATA / "valid.txt"),
    "model": {
        "type": "simple_tagger",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 8}}},
        "encoder": {"type": "lstm", "hidden_size": 8},
    },
    "data_loader": {"batch_size": 8},
    "trainer": {"num_epochs": 1, "optimizer": {"type": "sgd", "lr": 0.5}, "callbacks": []},
}


def test_rates_grow_by_the_same_factor_or_amount() -> None:
    rates = RateRange(start=0.01, end=1.0, num_batches=5)
    assert [rates.rate(step) for step in range(5)] == pytest.approx(np.geomspace(0.01, 1.0, 5))
    rates = RateRange(start=0.01, end=1.0, num_batches=5, is_linear=True)
    assert [rates.rate(step) for step in range(5)] == pytest.approx(np.linspace(0.01, 1.0, 5))


def test_the_smoothed_loss_has_no_bias_of_its_beginning() -> None:
    assert RateLosses([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]).smoothed == pytest.approx([5.0] * 3)
    smoothed = RateLosses([1.0, 2.0], [1.0, 3.0]).smoothed
    assert smoothed[1] == pytest.approx((0.9 * 0.1 * 1.0 + 0.1 * 3.0) / (1 - 0.9**2))


def test_rates_are_read_from_the_smoothed_losses() -> None:
    rates = np.geomspace(1e-4, 1.0, 81)
    losses = [10.0 / (1 + (rate / 0.01) ** 2) + 50 * rate for rate in rates]
    result = RateLosses(rates.tolist(), losses)
    smoothed = np.array(result.smoothed)
    slopes = np.gradient(smoothed, np.log(rates))[1:-1]
    assert result.steepest == pytest.approx(rates[1 + int(slopes.argmin())])
    assert result.lowest == pytest.approx(rates[int(smoothed.argmin())])


def test_the_test_ends_when_the_loss_is_several_times_its_minimum() -> None:
    flat = [1.0] * 11
    assert _end(flat, 4.0) is None
    assert _end([*flat, 100.0], None) is None
    assert _end([*flat, 100.0], 4.0) == "the smoothed loss is more than 4 times its minimum"
    assert _end([1.0, 100.0], 4.0) is None  # too early


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 0.0}, "rates from 0 to 10"),
        ({"start": 1.0, "end": 0.5}, "rates from 1 to 0.5"),
        ({"end": math.inf}, "rates from 1e-05 to inf"),
        ({"num_batches": 1}, "needs 2 or more"),
        ({"stopping_factor": 1.0}, "must be above 1"),
        ({"stopping_factor": math.nan}, "a stopping factor of nan; it must be above 1"),
    ],
)
def test_a_wrong_range_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RateRange(**options)  # type: ignore[arg-type]


def find(tmp_path: Path, *flags: str, name: str = "rates") -> int:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return main(["find-lr", str(tmp_path / "config.json"), "-s", str(tmp_path / name), *flags])


def test_a_table_and_a_picture_are_written(tmp_path: Path, capsys) -> None:
    flags = ("--start-lr", "0.001", "--end-lr", "1", "--num-batches", "12")
    assert find(tmp_path, *flags) == 0
    printed = capsys.readouterr().out
    rows = (tmp_path / "rates" / "learning_rates.csv").read_text().splitlines()
    assert rows[0] == "learning_rate,loss,smoothed_loss"
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows[1:]])
    assert values[:, 0] == pytest.approx(np.geomspace(0.001, 1, 12), rel=1e-4)
    assert values[0, 1] > values[:, 1].min()
    assert "steepest: " in printed
    picture = (tmp_path / "rates" / "learning_rates.svg").read_text()
    assert 'aria-label="Training loss by learning rate"' in picture
    assert ">0.001<" in picture
    assert sorted(path.name for path in (tmp_path / "rates").iterdir()) == [
        "learning_rates.csv",
        "learning_rates.svg",
    ]
    assert find(tmp_path, *flags) == 2
    assert "already exists" in capsys.readouterr().err


@final
class Losses(Callback):
    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, report: StepReport) -> None:
        self.values.append(float(report.loss))


def test_a_constant_rate_has_the_losses_of_training(tmp_path: Path) -> None:
    components.load()
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    config = Config.load(tmp_path / "config.json")
    _, experiment = check_config(config).unwrap()
    rates = RateRange(start=0.5, end=0.5000001, num_batches=6)
    measured = rate_losses(experiment, rates).losses

    trained = Losses()
    train_assembly(config, tmp_path / "run", callbacks=[trained])
    assert len(trained.values) > 6
    assert measured == pytest.approx(trained.values[:6], rel=1e-5)


@pytest.mark.parametrize("value", ["0", "-1"])
def test_a_wrong_rate_is_the_users_error(tmp_path: Path, value: str, capsys) -> None:
    assert find(tmp_path, "--start-lr", value) == 2
    assert "the first must be above 0" in capsys.readouterr().err
    assert not (tmp_path / "rates").exists()


@pytest.mark.parametrize("name", ["config.json", "rates"], ids=["folder", "table"])
def test_an_output_that_cannot_be_written_is_refused_before_training(
    name: str, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning_rates, "rate_losses", lambda *_: pytest.fail("trains"))
    (tmp_path / "rates/.learning_rates.csv.writing/full").mkdir(parents=True)
    monkeypatch.setattr(files, "remove", lambda path: None)  # as in a folder of somebody else
    assert find(tmp_path, name=name) == 2
    assert str(tmp_path / name) in capsys.readouterr().err


def test_a_loss_that_is_not_finite_ends_the_test(tmp_path: Path, capsys) -> None:
    flags = ("--start-lr", "0.1", "--end-lr", "1e30", "--num-batches", "40")
    assert find(tmp_path, *flags, "--stopping-factor", "1e9") == 0
    assert "ended after" in capsys.readouterr().out
