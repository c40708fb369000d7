import pytest
import torch

from elmo_framework.data.source import Rank
from elmo_framework.experiment import slow_path
from elmo_framework.training.process_group import ProcessGroup


def said(
    reason: str | None,
    device: str,
    rank: int,
    patch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    patch.setattr(slow_path, "slow_path_reason", lambda: reason)
    slow_path.say_if_slow(torch.device(device), ProcessGroup(Rank(rank, 2)))
    return capsys.readouterr().err


def test_the_first_process_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "LSTM steps are computed by PyTorch, which is slower: no compiler\n"
    assert said("no compiler", "cpu", 0, monkeypatch, capsys) == line


@pytest.mark.parametrize(
    ("reason", "device", "rank"),
    [(None, "cpu", 0), ("no compiler", "cuda", 0), ("no compiler", "cpu", 1)],
    ids=["compiled", "gpu", "other process"],
)
def test_nothing_is_said_otherwise(
    reason: str | None,
    device: str,
    rank: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert said(reason, device, rank, monkeypatch, capsys) == ""
