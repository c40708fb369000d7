"""The studies of the paper's tables: they parse, and have the runs and the ELMo of the paper."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from evidence import planned_runs

from elmo_framework.bilm.context_layers import ContextLayers
from elmo_framework.config.load import Config
from elmo_framework.config.parse import parse
from elmo_framework.study.check import LoadedStudy, load_study

STUDIES = Path(__file__).parents[2] / "experiments" / "paper"
NUM_RUNS = {"table1": 100, "table2": 36, "table3": 27, "figure2": 48, "bilms": 5, "appendix": 42}
NUM_FULL_RUNS = NUM_RUNS | {"table1": 105}
OF_PAGE = sorted({*NUM_RUNS, "table4", "table5", "table6"} - {"bilms"})


@cache
def load(name: str) -> LoadedStudy:
    return load_study(Config.load(STUDIES / f"{name}.jsonnet"))


def configs(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the config of each variant, by the names of the config and of the variant."""
    return {(c.plan.config, c.plan.variant): dict(c.plan.raw) for c in load(name).cells}


def elmo_of(config: dict[str, Any]) -> dict[str, Any]:
    """Return the blocks of ELMo of a config by their place."""
    model = config["model"]
    blocks = {
        "input": model["embedder"]["token_embedders"].get("elmo") or model.get("context_embedder"),
        "output": model.get("output_embedder"),
    }
    return {place: block for place, block in blocks.items() if block is not None}


@pytest.mark.parametrize(
    ("name", "number"),
    [*NUM_RUNS.items(), *((f"full/{name}", number) for name, number in NUM_FULL_RUNS.items())],
)
def test_study_has_the_planned_number_of_runs(name: str, number: int) -> None:
    cells = load(name).cells
    assert sum(len(cell.seeds) for cell in cells) == number
    for cell in cells:
        assert cell.parsed  # the config of each variant has only known keys and names


@pytest.mark.parametrize("name", OF_PAGE)
def test_page_plans_the_runs_of_the_study(name: str) -> None:
    planned = Counter(planned_runs(STUDIES / f"{name}.jsonnet"))
    assert planned == Counter(
        (cell.plan.cell, seed) for cell in load(name).cells for seed in cell.seeds
    )


def test_table1_variants_differ_in_the_bilm_only() -> None:
    of_table = configs("table1")
    for task in ("squad", "snli", "srl", "coreference", "ner", "sst"):
        none, control, mini = (of_table[task, name] for name in ("none", "control", "mini"))
        assert not elmo_of(none)
        assert none["test_fraction"] == control["test_fraction"] == mini["test_fraction"] == 0.1
        for place, block in elmo_of(mini).items():
            assert block == {**elmo_of(control)[place], "bilm": "mini"}
            assert elmo_of(control)[place]["bilm"] == "runs/mini-control"
    for task in ("ner", "sst"):
        embedders = of_table[task, "characters"]["model"]["embedder"]["token_embedders"]
        assert [*embedders] == ["token_characters"]


def test_table2_varies_layers_and_penalty() -> None:
    of_table = configs("table2")
    for task in ("squad", "snli", "srl"):
        assert not elmo_of(of_table[task, "baseline"])
        for block in elmo_of(of_table[task, "top"]).values():
            assert block["mix"] == {"type": "layer", "index": -1}
        for variant, penalty in (("all_1", 1.0), ("all_0_001", 0.001)):
            blocks = elmo_of(of_table[task, variant])
            assert [block["mix"]["l2"] for block in blocks.values()] == [penalty] * len(blocks)


def test_table3_varies_the_place() -> None:
    of_table = configs("table3")
    places = {"input": ["input"], "both": ["input", "output"], "output": ["output"]}
    for task in ("squad", "snli", "srl"):
        for variant, expected in places.items():
            assert [*elmo_of(of_table[task, variant])] == expected


@pytest.mark.parametrize("name", ["bilms", "full/bilms"])
def test_bilms_of_all_depths_have_equal_parameters(name: str) -> None:
    of_study = {config: raw["model"] for (config, _), raw in configs(name).items()}
    sizes = {}
    for depth in (1, 2, 4):
        raw = of_study[f"depth_{depth}"]["context_layers"]
        dim = of_study[f"depth_{depth}"]["token_encoder"]["projection_dim"]
        layers = parse(ContextLayers, {**raw, "dropout": 0.1}, source=name).build(input_dim=dim)
        assert layers.num_layers == depth
        sizes[depth] = sum(parameter.numel() for parameter in layers.parameters())
    assert len(set(sizes.values())) == 1
