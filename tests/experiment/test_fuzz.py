"""A fixed sample of what `make fuzz` tries by the thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.config.load import Config
from elmo_framework.config.registry import members
from elmo_framework.data.reader import DatasetReader
from tests.fuzz.samples import SAMPLES
from tests.fuzz.targets import (
    Configs,
    Corpora,
    Data,
    FuzzError,
    OldConfigs,
    Runs,
    Studies,
    Target,
    Weights,
    elmo,
)

SAMPLE = {Configs: 15, OldConfigs: 10, Studies: 4, Data: 120, Weights: 12, Runs: 8, Corpora: 8}
MAX_SAMPLE = 120
WITHOUT_SAMPLE = {"prepared_corpus", "wsd"}
"""Corpora are a target of their own; `wsd` reads two files."""


@pytest.mark.parametrize("target", SAMPLE, ids=lambda target: target.name)
def test_mutated_input_is_used_or_refused(
    target: type[Target], bilm: Path, tagger: Path, tmp_path: Path
) -> None:
    fuzzed = Runs(tmp_path, bilm=bilm, tagger=tagger) if target is Runs else target(tmp_path)
    refused = list[bool]()
    # The files of a run hold times, so their mutations differ: few of them may all be accepted.
    while len(refused) < SAMPLE[target] or (len({*refused}) == 1 and len(refused) < MAX_SAMPLE):
        outcome = fuzzed.attempt(len(refused))
        refused.append(outcome.startswith("2 ") or ": refused: " in outcome)
    assert {*refused} == {True, False}


def test_every_reader_has_a_sample() -> None:
    readers = {
        name
        for name, reader in members(DatasetReader).items()
        if reader.__module__.startswith("elmo_framework.")
    }
    assert readers == {*SAMPLES, *WITHOUT_SAMPLE}


def test_a_traceback_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Config, "load", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        elmo("check", str(tmp_path))


def test_different_outcomes_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter(["0 a", "0 b"])
    monkeypatch.setattr(Data, "_read", lambda *_: next(outcomes))
    with pytest.raises(FuzzError, match="differs"):
        Data(tmp_path).attempt(0)
