"""One vector per sentence: `elmo embed --pool`, for biLMs and transformers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_framework.data.data_loader import Rank
from elmo_framework.embedding import corpus_vectors
from elmo_framework.embedding.embed import embed
from elmo_framework.embedding.job import EmbeddingJob
from elmo_framework.embedding.json_lines import write_json_lines
from elmo_framework.embedding.vector_output import VectorWriter
from elmo_framework.errors import RunError, StoppedError
from elmo_framework.layers.encoder_files import open_encoder
from elmo_framework.layers.sentence_pool import pooled
from elmo_framework.layers.transformer_source import TransformerOptions
from tests.unit.embedding.conftest import TEXT

Jobs = Callable[..., EmbeddingJob]
POOLS = ("mean", "max", "first_last")


def expected(job: EmbeddingJob) -> np.ndarray:
    """One vector a line and layer, by NumPy from the vectors of words: lines, layers, dim."""
    source, vectors = open_encoder(job.bilm), []
    for line in TEXT:
        ((_, layers),) = source.read([line.split() or ["x"]])
        words = layers[:, 1:-1].numpy()
        vector = {
            "mean": words.mean(axis=1),
            "max": words.max(axis=1),
            "first_last": np.concatenate([words[:, 0], words[:, -1]], axis=1),
        }[job.pool]
        vectors.append(vector if line.split() else np.zeros_like(vector))
    return np.stack(vectors)


def hdf5(path: Path) -> np.ndarray:
    with h5py.File(path) as file:
        return np.stack([file[str(index)][...] for index in range(len(TEXT))])


@pytest.mark.parametrize("pool", POOLS)
def test_pooled_vectors_equal_numpy(pool: str, job: Jobs, tmp_path: Path) -> None:
    wanted = expected(job(pool=pool))
    embed(job(pool=pool))
    np.testing.assert_allclose(hdf5(job().output), wanted, atol=2e-6)
    embed(job(pool=pool, output=tmp_path / "out.npy"))
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wanted, atol=2e-6)
    embed(job(pool=pool, output=tmp_path / "out"))
    vectors, index = (np.load(tmp_path / "out" / f"{name}.npy") for name in ("vectors", "index"))
    assert vectors.shape[0] == len({tuple(line.split()) for line in TEXT})
    assert (index[:, 1] == 1).all()
    np.testing.assert_allclose(vectors[index[:, 0]], wanted, atol=2e-6)


def test_one_layer_has_no_axis_of_layers(job: Jobs, tmp_path: Path) -> None:
    top = job(pool="mean", layers="top", dtype="float16", output=tmp_path / "out.npy")
    embed(top)
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected(top)[:, -1], atol=2e-3)


@pytest.mark.parametrize("pool", POOLS)
def test_json_lines_have_one_vector_each(pool: str, job: Jobs) -> None:
    file = io.StringIO()
    write_json_lines(job(pool=pool), file, device=torch.device("cpu"), rank=Rank(0, 1))
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["words"] for line in lines] == [line.split() for line in TEXT]
    found = np.array([line["vectors"] for line in lines])
    np.testing.assert_allclose(found, expected(job(pool=pool)), atol=2e-6)


def test_killed_pooled_job_is_resumed(job: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_vectors, "_BATCHES_PER_CHUNK", 1)
    job_of_pools = job(pool="max", max_tokens=4)
    embed(job_of_pools)
    whole = job().output.read_bytes()
    job().output.unlink()
    marked, mark = [], VectorWriter.mark_done

    def mark_and_die(writer: VectorWriter, chunk: int) -> None:
        mark(writer, chunk)
        marked.append(chunk)
        if len(marked) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VectorWriter, "mark_done", mark_and_die)
        with pytest.raises(StoppedError):
            embed(job_of_pools)
    with pytest.raises(RunError, match="pool"):
        embed(job(pool="mean", max_tokens=4, resume=True))
    embed(job(pool="max", max_tokens=4, resume=True))
    assert job().output.read_bytes() == whole


def test_pool_of_no_words_is_zeros() -> None:
    for pool, dim in (("mean", 3), ("max", 3), ("first_last", 6)):
        assert pooled(np.ones((2, 0, 3)), pool).tolist() == np.zeros((2, 1, dim)).tolist()
    vectors = np.ones((2, 0, 3))
    assert pooled(vectors, "none") is vectors


def test_transformer_is_embedded_like_a_bilm(job: Jobs, transformer_folder) -> None:
    pytest.importorskip("transformers")
    folder = transformer_folder("gpt2")
    embed(job(bilm=folder))
    source = open_encoder(folder)
    with h5py.File(job().output) as file:
        for index, line in enumerate(TEXT):
            ((_, layers),) = source.read([line.split()])
            np.testing.assert_allclose(file[str(index)], layers[:, 1:-1], atol=1e-5)
    embed(job(bilm=folder, pool="mean", force=True))
    np.testing.assert_allclose(
        hdf5(job().output), expected(job(bilm=folder, pool="mean")), atol=1e-5
    )


def test_transformer_refuses_int8(job: Jobs, transformer_folder) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(RunError, match="'int8', which is for biLMs"):
        embed(job(bilm=transformer_folder("bert"), precision="int8"))


def test_transformer_options_are_flags(job: Jobs, transformer_folder) -> None:
    pytest.importorskip("transformers")
    folder = transformer_folder("bert")
    words = ["dogs"] * 9  # more pieces than a window of six
    job().sentences[0].write_text(" ".join(words) + "\n")
    options = TransformerOptions(max_length=6, sub_token_mode="first")
    changed = job(bilm=folder, max_length=6, sub_token_mode="first", layers="top")
    embed(changed)
    ((_, layers),) = open_encoder(folder, options=options).read([words])
    ((_, others),) = open_encoder(folder).read([words])
    with h5py.File(changed.output) as file:
        vectors = file["0"][...]
    np.testing.assert_allclose(vectors, layers[-1, 1:-1], atol=1e-5)
    assert np.abs(vectors - others[-1, 1:-1].numpy()).max() > 1e-3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"max_length": 9}, "--max-length is for transformers, and .*bilm is not"),
        ({"sub_token_mode": "mean"}, "--sub-token-mode is for transformers"),
        ({"max_length": 9, "layers": "mixed(runs/ner)"}, "has the options of its run"),
    ],
)
def test_transformer_options_are_refused_elsewhere(job: Jobs, flags, message: str) -> None:
    with pytest.raises(RunError, match=message):
        embed(job(**flags))
