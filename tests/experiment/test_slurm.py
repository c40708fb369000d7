"""Runs of a study as submitted jobs, on the cluster `local` of submitit."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any, final

import pytest

from elmo_framework.commands.main import main
from elmo_framework.config.load import Config
from elmo_framework.config.types import Injected
from elmo_framework.study import read_record
from elmo_framework.training.callback import Callback
from elmo_framework.training.state import StepReport
from tests.experiment.jobs import TAGGING

STEP = 7


@final
@Callback.register("preempt_once")
class PreemptOnce(Callback):
    """Sends its job the signal of a preemption after an update, the first time.

    Args:
        directory: of the run; a file beside it remembers that the signal was sent.
    """

    def __init__(self, directory: Injected[Path]) -> None:
        self._sent = directory.parent / "preempted"

    def step(self, report: StepReport) -> None:
        if report.step == STEP and not self._sent.exists():
            self._sent.touch()
            os.kill(os.getppid(), signal.SIGUSR2)


def study(path: Path, *, executor: dict[str, Any], callbacks: list[str]) -> Path:
    config = Config.load("experiments/ner/baseline.jsonnet", overrides=[json.dumps(TAGGING)]).raw
    config["plugins"] = ["tests.experiment.test_slurm"]
    config["trainer"] |= {"num_epochs": 3, "callbacks": callbacks}
    raw = {"configs": {"ner": {"config": config}}, "seeds": [1], "executor": executor}
    path.write_text(json.dumps(raw))
    return path


@pytest.mark.slow
def test_a_preempted_job_resumes_to_the_same_scores(in_root: Path, tmp_path: Path) -> None:
    plain = study(tmp_path / "plain.json", executor={"type": "local"}, callbacks=[])
    assert main(["study", str(plain), "-s", str(tmp_path / "plain")]) == 0
    slurm = {"type": "slurm", "cluster": "local", "timeout_min": 10}
    preempted = study(tmp_path / "preempted.json", executor=slurm, callbacks=["preempt_once"])
    assert main(["study", str(preempted), "-s", str(tmp_path / "preempted")]) == 0
    records = [
        read_record(tmp_path / name / "results/ner/default/seed-1.json")
        for name in ("plain", "preempted")
    ]
    assert records[0].validation == records[1].validation
    assert (tmp_path / "preempted/runs/ner/default/preempted").exists()
    log = (tmp_path / "preempted/logs/ner/default/seed-1.log").read_text()
    # The signal comes while the step after it is computed, which may still end.
    assert re.search(rf"resumed at step ({STEP}|{STEP + 1})\b", log)
