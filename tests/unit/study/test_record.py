"""Records of runs, and what makes them records of another config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_framework.errors import RunError
from elmo_framework.io.files import digest
from elmo_framework.study.changes import changed_keys, is_moved
from elmo_framework.study.record import read_record, read_records
from tests.unit.study.studies import METRIC, add_record

FILE = "trainer.validation_data_path"


def keys_of_change(before: Any, now: Any, key: str = "path") -> list[str]:
    return changed_keys({key: before}, {key: now}, is_moved=lambda change: False)


def test_score_of_another_metric_is_an_error(tmp_path: Path) -> None:
    record = add_record(tmp_path, "mini", 1, 0.5)
    assert record.score(f"-{METRIC}") == -record.score() == -0.5
    with pytest.raises(RunError, match="ner/mini/seed-1: no score 'recall' in its record"):
        record.score("+recall")


def test_fields_of_later_versions_are_ignored(tmp_path: Path) -> None:
    record = add_record(tmp_path, "mini", 1, 0.5)
    path = tmp_path / "results/ner/mini/seed-1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": 1}))
    assert read_record(path) == record


def test_records_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    for variant in ("none", "mini", "control"):
        add_record(tmp_path, variant, 1, 0.5)
    names = [record.name for record in read_records(tmp_path / "results")]
    assert names == [f"ner/{variant}/seed-1" for variant in ("control", "mini", "none")]


def test_path_in_another_form_and_plugins_are_no_change() -> None:
    assert keys_of_change("data/a.txt", str(Path("data/a.txt").absolute())) == []
    assert keys_of_change(["a"], ["b"], key="plugins") == []
    assert keys_of_change("data/a.txt", "data/b.txt") == ["path: 'data/a.txt' -> 'data/b.txt'"]


def test_a_moved_file_has_its_name_and_its_content(tmp_path: Path) -> None:
    now = tmp_path / "new/a.txt"
    now.parent.mkdir()
    now.write_text("a")
    digests = [digest([now])]
    assert is_moved((FILE, "old/a.txt", str(now)), digests)
    assert is_moved((FILE, "old/a.txt", "gone/a.txt"), [])
    assert not is_moved((FILE, "old/a.txt", str(now)), [])
    assert not is_moved((FILE, "old/b.txt", str(now)), digests)
    assert not is_moved((FILE, "lstm", "lstm "), digests)  # names of components, not paths
    assert not is_moved((FILE, "a", "a"), digests)
    assert not is_moved((FILE, 1, str(now)), digests)
