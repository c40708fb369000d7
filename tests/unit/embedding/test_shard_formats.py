"""The forms of a shard that are written from finished vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from elmo_framework.commands.main import main
from elmo_framework.config.job_part import JobPart
from elmo_framework.embedding import converted_formats, shards
from elmo_framework.embedding.converted_formats import quantize
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.errors import RunError
from tests.unit.embedding.conftest import TEXT
from tests.unit.embedding.test_shards import contents, visible

Make = Callable[..., EmbeddingJob]
Read = Callable[[Path], list[np.ndarray]]

FORMATS = ["npy", "hdf5", "parquet", "safetensors"]


@pytest.fixture
def sharded(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a job of several shards, each of several chunks."""
    monkeypatch.setattr(shards, "SHARD_BYTES", 30)
    monkeypatch.setattr(converted_formats, "_CHUNK_BYTES", 150)

    def make(**changes: Any) -> EmbeddingJob:
        return job(**{"output_dir": tmp_path / "out", "output": Path("-")} | changes)

    return make


def words_first(array: np.ndarray, *, has_rows: bool) -> np.ndarray:
    return array.swapaxes(0, 1) if has_rows else array


def scaled(vectors: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    return vectors.astype(np.float32) if scales is None else vectors * scales[..., None]


def read_arrays(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    vectors = scaled(arrays["vectors"], arrays.get("scales"))
    return [vectors[begin : begin + length] for begin, length in arrays["index"]]


def read_folder(path: Path) -> list[np.ndarray]:
    return read_arrays({file.stem: np.load(file) for file in path.glob("*.npy")})


def read_hdf5(path: Path) -> list[np.ndarray]:
    with h5py.File(path) as file:
        count = sum(name.isdecimal() for name in file)
        return [
            scaled(file[str(n)][()], file[f"scales/{n}"][()] if "scales" in file else None)
            for n in range(count)
        ]


def read_parquet(path: Path) -> list[np.ndarray]:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(path).to_pylist()
    return [
        scaled(np.array(row["vectors"]), np.array(row["scales"]) if "scales" in row else None)
        for row in rows
    ]


READERS: dict[str, Read] = {
    "npy": read_folder,
    "hdf5": read_hdf5,
    "parquet": read_parquet,
    "safetensors": lambda path: read_arrays(load_file(path)),
}


def read_shards_of(folder: Path, file_format: str) -> list[np.ndarray]:
    return [array for shard in visible(folder) for array in READERS[file_format](shard)]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    "options", [{"layers": "all"}, {"layers": "top"}, {"layers": "all", "pool": "mean"}]
)
def test_every_form_has_the_vectors_of_one_output(
    sharded: Make, tmp_path: Path, file_format: str, dtype: str, options: dict[str, str]
) -> None:
    embed(sharded(output_dir=None, output=tmp_path / "one", **options))
    expected = read_folder(tmp_path / "one")
    embed(sharded(format=file_format, dtype=dtype, **options))
    arrays = read_shards_of(tmp_path / "out", file_format)
    assert len(visible(tmp_path / "out")) > 1
    assert len(arrays) == len(TEXT)
    for array, other in zip(arrays, expected, strict=True):
        wanted = other
        if file_format == "hdf5":
            pooled = "pool" in options
            wanted = other[0] if pooled else words_first(other, has_rows=options["layers"] == "all")
        elif file_format == "parquet" and "pool" in options:
            wanted = other[0]
        # A list without elements has lost the width of its vectors.
        assert array.shape == wanted.shape or not array.size
        bound = (
            np.abs(wanted).max(initial=0) * {"float32": 0, "float16": 1e-3, "int8": 1 / 253}[dtype]
        )
        np.testing.assert_allclose(array.reshape(wanted.shape), wanted, atol=bound + 2e-6, rtol=0)


@pytest.mark.parametrize("file_format", FORMATS)
def test_int8_is_the_quantized_float32(sharded: Make, tmp_path: Path, file_format: str) -> None:
    options = {"layers": "top", "pool": "mean", "format": file_format}
    embed(sharded(**options))
    embed(sharded(**options, dtype="int8", output_dir=tmp_path / "int8"))
    exact = read_shards_of(tmp_path / "out", file_format)
    rounded = read_shards_of(tmp_path / "int8", file_format)
    for one, other in zip(exact, rounded, strict=True):
        numbers, scales = quantize(one)
        np.testing.assert_allclose(other, scaled(numbers, scales), rtol=1e-6)


@pytest.mark.parametrize("file_format", ["parquet", "safetensors"])
def test_union_of_parts_has_the_same_bytes(sharded: Make, tmp_path: Path, file_format: str) -> None:
    if file_format == "parquet":
        pytest.importorskip("pyarrow")
    embed(sharded(format=file_format, dtype="int8"))
    for number in (1, 0):
        parts = tmp_path / "parts"
        embed(sharded(format=file_format, dtype="int8", output_dir=parts, part=JobPart(number, 2)))
    assert contents(tmp_path / "out") == contents(tmp_path / "parts")


def test_quantized_numbers_are_within_half_a_scale() -> None:
    vectors = np.random.default_rng(1).normal(size=(50, 3, 16)).astype(np.float32)
    vectors[3] = 0
    numbers, scales = quantize(vectors)
    assert numbers.dtype == np.int8
    assert scales.shape == (50, 3)
    assert np.abs(numbers).max() == 127
    error = np.abs(numbers * scales[..., None] - vectors)
    assert (error <= scales[..., None] * 0.5 + 1e-7).all()
    assert not numbers[3].any()


def test_parquet_has_ids_and_tokens(sharded: Make, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    embed(sharded(format="parquet", pool="mean", layers="top"))
    tables = [parquet.read_table(path) for path in visible(tmp_path / "out")]
    rows = [row for table in tables for row in table.select(["id", "tokens"]).to_pylist()]
    assert [row["tokens"] for row in rows] == [line.split() for line in TEXT]
    assert rows[0]["id"] == "000000-000000/0"
    assert len({row["id"] for row in rows}) == len(TEXT)
    assert str(tables[0].schema.field("vectors").type).startswith("fixed_size_list")


def test_missing_pyarrow_is_one_line(sharded: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RunError, match=r"pip install 'elmo-framework\[parquet\]'"):
        embed(sharded(format="parquet"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output-file", "x.npy", "--dtype", "int8"], "--dtype int8 needs --output-dir"),
        (["--output-file", "x", "--format", "parquet"], "--format parquet needs --output-dir"),
        (["--output-file", "x.safetensors"], ".safetensors of --output-file x.safetensors needs"),
        (["--dtype", "int8"], "--dtype int8 needs --output-dir"),
    ],
)
def test_forms_of_shards_need_a_folder(
    job: Make, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(job().sentences[0])
    assert main(["embed", str(job().bilm), text, *arguments]) == 2
    assert message in capsys.readouterr().err
