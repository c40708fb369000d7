from pathlib import Path

import pytest

from elmo_framework.commands.main import main
from elmo_framework.experiment import train as training

METRICS = {
    "training_end": "all epochs done",
    "training_steps": 3,
    "training_duration": 1.0,
    "best_step": 2,
    "test_accuracy": 0.5,
}


@pytest.mark.parametrize(("rank", "speaks"), [(None, True), ("0", True), ("1", False)])
def test_only_the_first_process_reports_the_result(
    rank: str | None,
    speaks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(training, "train", lambda *_, **__: METRICS)
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    config = tmp_path / "config.json"
    config.write_text("{}")
    assert main(["train", str(config), "-s", "runs/ner"]) == 0
    said = capsys.readouterr().err
    assert ("3 steps in 1 second, the best at step 2" in said) is speaks
    assert ("test_accuracy 0.5" in said) is speaks
