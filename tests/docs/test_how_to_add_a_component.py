"""The components of the page work as the page describes."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import torch

from elmo_framework import data, load, load_bilm
from elmo_framework.bilm import ContextLayers, LayerMix
from elmo_framework.commands.main import main
from elmo_framework.config.parse import parse
from elmo_framework.config.registry import members
from elmo_framework.data import DatasetReader, formats
from elmo_framework.metrics import Metric
from tests.docs.page import run_page
from tests.plugin_scope import without_plugins

PAGE = Path(__file__).parents[2] / "docs/how_to_add_a_component.md"
MODULES = (
    "linear_mix",
    "brier",
    "fasttext_reader",
    "block_reader",
    "two_pool_classifier",
    "character_average",
    "gru_layers",
    "cauchy",
)


@pytest.fixture(scope="module", autouse=True)
def _in_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder after the page was worked through."""
    with without_plugins(*MODULES), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        assert run_page(PAGE) == 13
        yield


def test_the_page_writes_every_module() -> None:
    assert {path.stem for path in Path().glob("*.py")} == set(MODULES)


def test_the_examples_have_the_fields_of_the_page() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| `(elmo_framework[\w.]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) == 9
    for name, package, cell in rows:
        fields = [field.name for field in dataclasses.fields(getattr(import_module(package), name))]
        assert fields == re.findall(r"`(\w+)`", cell), name


def test_tools_for_readers_are_public() -> None:
    tools = re.findall(r"^\* `(\w+)|and `(read_\w+)` reads", PAGE.read_text(), re.MULTILINE)
    names = {first or second for first, second in tools}
    assert len(names) == 5
    assert {"FileFormat", "FileSample", *names} <= set(formats.__all__)
    assert "tags_in_scheme" in data.__all__


def test_readers_of_the_page_stop_at_max_instances() -> None:
    for name, file in (("fasttext", "fast.txt"), ("blocks", "train.blocks")):
        Path("fast.txt").write_text("__label__a b\n" * 2)
        reader = parse(DatasetReader, {"type": name, "max_instances": 1}, source="").build()
        assert len(list(reader.read(Path(file)))) == 1


def test_the_layer_mix_is_trained_and_its_weights_are_logged() -> None:
    run = load("runs/linear_mix")
    (mix,) = [part for part in run.model.modules() if type(part).__name__ == "LinearMix"]
    weights = mix.monitored_values()
    assert list(weights) == ["w_0", "w_1", "w_2"]
    assert weights["w_0"] != pytest.approx(1 / 3, abs=1e-4)
    logged = json.loads(Path("runs/linear_mix/metrics.jsonl").read_text().splitlines()[-1])
    assert "w_2" in json.dumps(logged)


def test_cached_layers_are_rounded_to_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    layers_read = []

    def forward(_: object, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        layers_read.append(layers)
        return layers.mean(dim=0)

    monkeypatch.setattr(members(LayerMix)["linear_mix"], "forward", forward)
    assert main(["evaluate", "runs/linear_mix", "valid.jsonl"]) == 0
    (layers,) = layers_read
    assert layers.dtype == torch.float32
    assert torch.equal(layers, layers.half().float())


def test_check_runs_no_forward_and_no_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(members(LayerMix)["linear_mix"], "forward", fail)
    monkeypatch.setattr(members(Metric)["brier"], "count", fail)
    options = ["--data", "-o", 'plugins=["linear_mix", "brier"]', "-o", 'model.metrics=["brier"]']
    assert main(["check", "linear_mix.jsonnet", *options]) == 0
    capsys.readouterr()
    assert main(["check", "linear_mix.jsonnet", "-o", "train_data_path=missing"]) == 2
    assert "parameters" in capsys.readouterr().out


def test_the_metric_selects_the_best_weights() -> None:
    metrics = json.loads(Path("runs/brier/metrics.json").read_text())
    assert 0 < metrics["best_validation_brier"] < 0.5
    assert metrics["best_validation_mcc"] == 1
    evaluations = Path("runs/brier/metrics.jsonl").read_text().splitlines()
    scores = [json.loads(line)["brier"] for line in evaluations]
    assert metrics["best_validation_brier"] == min(scores)
    assert metrics["validation_brier"] == scores[-1]


def test_the_head_learns_the_texts() -> None:
    predictions = load("runs/two_pools").predict(["the songs are lovely", "the jokes are stale"])
    assert [prediction["label"] for prediction in predictions] == ["good", "bad"]


@pytest.mark.parametrize("run", ["runs/bilm", "runs/gru_bilm"])
def test_padding_changes_no_vector_of_the_bilms(run: str) -> None:
    bilm = load_bilm(run)
    long, short = ["We", "sang", "all", "day", "."], ["Rain", "fell"]
    together, alone = bilm.embed([long, short]), bilm.embed([short])
    torch.testing.assert_close(torch.tensor(together[1]), torch.tensor(alone[0]))
    assert together[0].shape == (3, 5, 16)


def test_the_gru_layers_continue_from_their_state() -> None:
    layers = members(ContextLayers)["gru_cells"](input_dim=8, hidden_dim=8)
    inputs, mask = torch.randn(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)
    whole = layers.read(inputs, mask, direction="backward")
    first = layers.read(inputs[:, :4], mask[:, :4], direction="backward")
    rest = layers.read(inputs[:, 4:], mask[:, 4:], direction="backward", state=first.state)
    torch.testing.assert_close(whole.layers[:, :, 4:], rest.layers)
    torch.testing.assert_close(whole.state, rest.state)
