"""The recipes of `docs/scaling.md`; those whose library is not installed are skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from elmo_framework import load_bilm
from tests.conftest import ROOT

_PAGE = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r'```python title="(with_\w+\.py)"\n(.*?)```', _PAGE, re.DOTALL))
LIBRARIES = {
    "with_submitit.py": "submitit",
    "with_ray.py": "ray",
    "with_datasets.py": "datasets",
    "with_spark.py": "pyspark",
}


def run(recipe: str, folder: Path) -> None:
    if find_spec(LIBRARIES[recipe]) is None:
        pytest.skip(f"{LIBRARIES[recipe]} is not installed")
    (folder / recipe).write_text(RECIPES[recipe], encoding="utf-8")
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    subprocess.run([sys.executable, recipe], cwd=folder, check=True, timeout=600, env=environment)


def test_recipes_have_at_most_20_lines() -> None:
    assert RECIPES.keys() == LIBRARIES.keys()
    for code in RECIPES.values():
        assert sum(bool(line.strip()) for line in code.splitlines()) <= 20


@pytest.mark.parametrize("recipe", ["with_ray.py", "with_datasets.py", "with_spark.py"])
def test_engines_have_the_vectors_of_one_process(recipe: str, tmp_path: Path) -> None:
    run(recipe, tmp_path)
    parquet = pytest.importorskip("pyarrow.parquet")
    files = sorted((tmp_path / "vectors").glob("*.parquet"))
    rows = [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]
    assert len({row["text"] for row in rows}) == len(rows) == 100
    expected = load_bilm("mini").sentences([row["text"] for row in rows], layers="top")
    vectors = np.array([row["vectors"] for row in rows])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_submitit_writes_the_shards(tmp_path: Path) -> None:
    run("with_submitit.py", tmp_path)
    (shard,) = (tmp_path / "vectors").glob("0*")
    assert np.load(shard / "vectors.npy").shape == (2, 256)
