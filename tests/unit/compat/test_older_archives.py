"""An archive of AllenNLP 2.10 in the form of earlier versions gives the same predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework import load
from elmo_framework.compat.allennlp.archive import AllenNlpArchive, import_archive
from elmo_framework.data.batch import to_device
from elmo_framework.training.evaluator import inference
from tests.plugin_scope import shipped_plugin
from tests.unit.compat.older_archives import VERSIONS, Version, rewrite
from tests.unit.compat.test_archive import ARCHIVES, DATA, FILES
from tests.unit.compat.test_archive_elmo import bcn

ALL_FILES = {
    **FILES,
    "decomposable_attention": "snli.jsonl",
    "constituency_parser": "../../allennlp/trees.mrg",
}


@pytest.fixture(autouse=True, scope="module")
def _heads() -> Iterator[None]:
    with shipped_plugin("allennlp_heads"):
        yield


def predicted(archive: Path, run: Path, file: str) -> tuple[list[Any], Any]:
    """Import an archive; return all numbers of the output of a batch, and its predictions."""
    import_archive(archive, run)
    loaded = load(run, device="cpu")
    head, examples = loaded.head(), loaded.experiment.dataset_reader.read(DATA / file)
    batch = to_device(loaded.explainer().collate([*examples]), torch.device("cpu"))
    with inference(head):
        output = head(batch)
        return [*numbers(output)], head.predict(output, batch)


def numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.numpy()
    elif is_dataclass(value):
        for field in fields(value):
            yield from numbers(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from numbers(each)


def check_equal(old: Path, new: Path, tmp_path: Path, file: str) -> None:
    theirs, predictions = predicted(old, tmp_path / "old", file)
    ours, others = predicted(new, tmp_path / "new", file)
    assert ours
    for own, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(own, their)
    assert predictions == others


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: ".".join(map(str, version)))
@pytest.mark.parametrize("kind", ALL_FILES)
def test_older_archives_predict_the_same(kind: str, version: Version, tmp_path: Path) -> None:
    archive = ARCHIVES / f"{kind}.tar.gz"
    old = rewrite(archive, version, tmp_path / "old.tar.gz")
    check_equal(old, archive, tmp_path, ALL_FILES[kind])


def test_an_older_archive_with_elmo_predicts_the_same(tmp_path: Path) -> None:
    archive = bcn(tmp_path, torch.randn(10, 256))
    old = rewrite(archive, VERSIONS[0], tmp_path / "old.tar.gz")
    check_equal(old, archive, tmp_path, "sst.txt")


def test_an_archive_is_rewritten_to_its_version(tmp_path: Path) -> None:
    archives = {
        (kind, version): AllenNlpArchive.read(
            rewrite(ARCHIVES / f"{kind}.tar.gz", version, tmp_path / "old.tar.gz")
        )
        for kind in ("coref", "bidaf", "stacked")
        for version in ((0, 8), (1, 5), (2, 10))
    }
    for kind in ("coref", "bidaf", "stacked"):
        newest = AllenNlpArchive.read(ARCHIVES / f"{kind}.tar.gz")
        assert archives[kind, (2, 10)].config == newest.config
        assert archives[kind, (1, 5)].weights.keys() == newest.weights.keys()
        assert archives[kind, (0, 8)].weights.keys() != newest.weights.keys()
        assert "iterator" in archives[kind, (0, 8)].config
