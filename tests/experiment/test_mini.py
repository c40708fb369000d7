"""The biLM of the package: it is there, small, sound, and has learned English."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.bilm.files.published import PACKAGED
from elmo_framework.bilm.files.weights_hdf5 import list_datasets
from tests.experiment.jobs import DATA, train
from tests.numpy_bilm import NumpyBiLm

FOLDER = PACKAGED["mini"]
LARGEST = 20_000_000
LARGEST_PERPLEXITY = 100.0


def test_it_comes_in_five_files_of_less_than_twenty_megabytes() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    names = {"options.json", "weights.hdf5", "softmax.safetensors", "vocabulary.txt", "README.md"}
    assert sizes.keys() == names
    assert sum(sizes.values()) < LARGEST


def test_its_card_counts_its_parameters_and_words() -> None:
    card = (FOLDER / "README.md").read_text()
    num_parameters = sum(map(prod, list_datasets(FOLDER / "weights.hdf5").values()))
    assert f"{num_parameters:,}" in card
    words = (FOLDER / "vocabulary.txt").read_text().splitlines()
    assert f"{len(words):,} words" in card


@pytest.mark.parametrize(
    ("word", "same", "other"),
    [
        (
            "bank",
            ("He sat on the bank of the river .", "They rested on the bank of the stream ."),
            "She took the money to the bank .",
        ),
        (
            "play",
            ("We saw a play at the theatre .", "The actors gave a play in the hall ."),
            "The children play in the garden .",
        ),
    ],
)
def test_a_word_has_more_of_a_vector_for_its_sense(
    word: str, same: tuple[str, str], other: str
) -> None:
    sentences = [sentence.split() for sentence in (*same, other)]
    layers = load_bilm("mini").embed(sentences)
    asked, near, far = (
        held[-1][words.index(word)] for held, words in zip(layers, sentences, strict=True)
    )
    assert cosine(asked, near) > cosine(asked, far)


def test_allennlp_reads_the_same_vectors() -> None:
    # AllenNLP adds 1 to the forget gates in the type of the dataset; NumpyBiLm adds it in float64.
    options, weights = json.loads((FOLDER / "options.json").read_text()), {}
    cell_size = options["lstm"]["dim"]
    forget = slice(2 * cell_size, 3 * cell_size)
    with h5py.File(FOLDER / "weights.hdf5") as file:
        for name in list_datasets(FOLDER / "weights.hdf5"):
            values = file[name][()]
            if name.endswith("LSTMCell/B"):
                values[forget] += 1
                values = values.astype(np.float64)
                values[forget] -= 1
            weights[name] = values.astype(np.float64)
    words = ["The", "dog", "'s", "bark", "woke", "everyone", "in", "Zürich", "."]
    expected = NumpyBiLm(options, weights).layers(words)[:, 1:-1]
    np.testing.assert_allclose(load_bilm("mini").embed([words])[0], expected, rtol=0, atol=1e-5)


def test_fine_tuning_starts_from_the_softmax_at_low_perplexity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(DATA / "lm_valid.txt")
    changes: dict[str, Any] = {
        "train_data_path": text,
        "validation_data_path": text,
        "trainer.num_steps": 2,
    }
    assert train("experiments/pretrain/fine_tune.jsonnet", tmp_path / "run", changes) == 0
    evaluations = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert json.loads(evaluations[0])["perplexity"] < LARGEST_PERPLEXITY
    capsys.readouterr()


def cosine(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
