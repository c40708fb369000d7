"""Vectors of an encoder, for several requests at once."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.errors import DataError, RunError
from elmo_framework.layers.encoder_files import is_encoder
from elmo_framework.serve.answers import EmbeddingRequest
from elmo_framework.serve.job import ServingJob
from elmo_framework.serve.served_encoder import RequestedSentence, ServedEncoder
from elmo_framework.serve.server import neighbor_services, served_encoder
from elmo_framework.serve.worker import Worker
from tests.numpy_bilm import NumpyBiLm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return NumpyBiLm.random().save(tmp_path / "bilm")


def served(folder: Path, **options: Any) -> ServedEncoder:
    return served_encoder(str(folder), ServingJob(models=[str(folder)], device="cpu", **options))


def sentences(*values: Any, **options: Any) -> list[RequestedSentence]:
    request = EmbeddingRequest(inputs=list(values), **options)
    return [RequestedSentence(value, request) for value in request.inputs]


def vectors(result: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(b64decode(result["vectors"]), "<f4").reshape(result["shape"])


def test_equal_sentences_of_a_request_have_vectors_each(folder: Path, monkeypatch) -> None:
    encoder = served(folder)
    wanted = [encoder.encoder.embed([words.split()])[0] for words in ("a b", "", "a b", "b")]
    monkeypatch.setattr(type(encoder.encoder), "embed", None)  # has all layers in memory
    read = encoder.read(sentences("a b", "", "a b", "b", encoding_format="base64"))
    for result, layers in zip(encoder.compute(read), wanted, strict=True):
        np.testing.assert_allclose(vectors(result), layers, atol=1e-6)


def test_requests_together_have_their_own_layers(folder: Path) -> None:
    encoder = served(folder)
    assert (encoder.name, encoder.description()["num_layers"]) == ("bilm", 3)
    worker = Worker(batch_size=8, max_waiting=100)
    texts = [" ".join(["Words", "in", "order", "."][: number % 5]) for number in range(8)]
    options = [{}, {"layers": "top"}, {"layers": [0, 2], "pool": "max"}, {"pool": "mean"}]
    futures = [
        worker.submit(encoder, sentences(text, encoding_format="base64", **options[number % 4]))
        for number, text in enumerate(texts)
    ]
    bilm = load_bilm(folder, device="cpu")
    for number, (text, future) in enumerate(zip(texts, futures, strict=True)):
        (result,), (layers,) = future.result(60), bilm.embed([text.split()])
        assert result["words"] == text.split()
        words = layers if text else np.zeros((3, 1, bilm.dim), np.float32)
        expected = {
            0: layers,
            1: layers[-1],
            2: words[[0, 2]].max(axis=1),
            3: words.mean(axis=1),
        }[number % 4]
        np.testing.assert_allclose(vectors(result), expected, rtol=1e-5, atol=1e-6)
    worker.close()


def test_texts_are_split_by_the_tokenizer(folder: Path) -> None:
    for tokenizer, words in (("whitespace", ["It's."]), ("spacy", ["It", "'s", "."])):
        encoder = served(folder, tokenizer=tokenizer)
        (result,) = encoder.compute(encoder.read(sentences("It's.", pool="mean")))
        assert result["words"] == words


def test_precision_is_that_of_the_job(folder: Path) -> None:
    exact, rounded = (
        vectors(encoder.compute(encoder.read(sentences("a b", encoding_format="base64")))[0])
        for encoder in (served(folder), served(folder, precision="bfloat16"))
    )
    assert 0 < np.abs(exact - rounded).max() < 0.1


def test_encoders_are_recognized(folder: Path, transformer_folder: Any, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    folder.rename(tmp_path / "run" / "bilm")
    assert is_encoder("mini")
    assert is_encoder(transformer_folder("bert"))
    assert is_encoder(tmp_path / "run" / "bilm")
    assert is_encoder(str(tmp_path / "run"))  # the run that trained it
    assert not is_encoder(tmp_path)
    assert not is_encoder("minni")


def test_errors_name_the_encoder(folder: Path, transformer_folder: Any) -> None:
    transformer = transformer_folder("bert")
    with pytest.raises(RunError, match=rf"^{transformer}: .*int8"):
        served(transformer, precision="int8")
    with pytest.raises(RunError, match="unknown tokenizer 'spacey'"):
        served(folder, tokenizer="spacey")
    (folder / "weights.hdf5").write_bytes(b"")
    with pytest.raises(DataError, match=r"weights\.hdf5"):
        served(folder)


def test_an_encoder_finds_neighbors(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a word\nno other word\n")
    job = ServingJob(models=[str(folder)], corpus=tmp_path / "corpus.txt", device="cpu")
    assert [*neighbor_services([], [served(folder)], job)] == ["bilm"]
