"""What counts as the same losses, and on which machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import circumstances
import pytest
import same_loss

HERE = {"processor": "a CPU", "torch": "2.6", "threads": 1}
RECORDED = {"circumstances": HERE, "losses": {"bilm": [36.5, 40.25], "tagger": [401.0]}}


def losses(**changed: list[float]) -> Any:
    return {**RECORDED["losses"], **changed}


def test_the_last_bit_counts_on_the_recorded_type_of_cpu(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert same_loss.compare(losses(), HERE, RECORDED) == 0
    assert same_loss.compare(losses(bilm=[36.5, 40.250000000000007]), HERE, RECORDED) == 1
    assert "bilm, step 2: 40.25000000000001, recorded 40.25" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(HERE))
@pytest.mark.parametrize(("loss", "code"), [(401.03, 0), (401.05, 1), (float("nan"), 1)])
def test_elsewhere_losses_may_differ_by_1e_4(name: str, loss: float, code: int) -> None:
    elsewhere = {**HERE, name: "another"}
    assert same_loss.compare(losses(tagger=[loss]), elsewhere, RECORDED) == code


@pytest.mark.parametrize("changed", [{"bilm": [36.5]}, {"other": [1.0]}])
def test_another_number_of_losses_is_a_difference(changed: dict[str, list[float]]) -> None:
    assert same_loss.compare(losses(**changed), HERE, RECORDED) == 1


def test_the_type_of_a_cpu_is_its_maker_family_and_model(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
        "model name\t: AMD EPYC\n\n"
    )
    assert circumstances.processor(described) == "AuthenticAMD family 25 model 17 (AMD EPYC)"
    assert circumstances.processor(tmp_path / "none")


def test_record_includes_the_circumstances() -> None:
    path = Path(same_loss.__file__).with_suffix(".json")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert set(recorded["circumstances"]) == set(circumstances.circumstances())
    assert {len(values) for values in recorded["losses"].values()} == {20}
