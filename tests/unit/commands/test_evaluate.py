"""Flags of `elmo evaluate`; whole evaluations are in other folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_framework.commands.evaluate import Evaluate
from elmo_framework.errors import RunError
from tests.conftest import ROOT

ARCHIVE = str(ROOT / "tests/fixtures/allennlp/crf_tagger.tar.gz")


def test_a_run_among_the_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "filled_config.json").write_text("{}")
    with pytest.raises(RunError, match="is a run, not data; --ensemble names further runs"):
        Evaluate(run_or_bilm=ARCHIVE, files=[tmp_path / "data.txt", tmp_path]).run()


def test_batch_size_is_that_of_the_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_CACHE_ROOT", str(tmp_path))
    sizes = [
        Evaluate(run_or_bilm=ARCHIVE, batch_size=size)
        ._load()
        .experiment.validation_data_loader.batch_size
        for size in (None, 3)
    ]
    assert sizes[1] == 3 != sizes[0]
