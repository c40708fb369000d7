"""Vectors of texts and of their words: `sentences` and `words`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.errors import RunError
from tests.numpy_bilm import NumpyBiLm

TEXTS = ["Wörter are words.", "", "a", ["many", "words"], "a"]
WORDS = [["Wörter", "are", "words", "."], [], ["a"], ["many", "words"], ["a"]]
SELECTED = {
    "average": lambda layers: layers.mean(axis=0),
    "top": lambda layers: layers[2],
    np.int64(-2): lambda layers: layers[1],
    "all": lambda layers: layers,
    (0, 2): lambda layers: layers[[0, 2]],
}
POOLED = {
    "mean": lambda words: words.mean(axis=-2),
    "max": lambda words: words.max(axis=-2),
    "first_last": lambda words: np.concatenate([words[..., 0, :], words[..., -1, :]], axis=-1),
}


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("layers", SELECTED)
@pytest.mark.parametrize("pool", POOLED)
def test_vectors_of_texts_equal_numpy(folder, numpy_bilm: NumpyBiLm, pool, layers) -> None:
    vectors = load_bilm(folder).sentences(TEXTS, pool=pool, layers=layers)
    assert vectors.dtype == np.float32
    for vector, words in zip(vectors, WORDS, strict=True):
        expected = np.zeros_like(vector)
        if words:
            expected = POOLED[pool](SELECTED[layers](numpy_bilm.layers(words)[:, 1:-1]))
        np.testing.assert_allclose(vector, expected, atol=1e-5)


@pytest.mark.parametrize("layers", SELECTED)
def test_vectors_of_words_are_those_of_embed(folder: Path, layers) -> None:
    bilm = load_bilm(folder)
    found = bilm.words(TEXTS, layers=layers)
    assert [list(text.words) for text in found] == WORDS
    for text, layers_of_text in zip(found, bilm.embed(WORDS), strict=True):
        np.testing.assert_array_equal(text.vectors, SELECTED[layers](layers_of_text))


def test_no_texts_have_a_shape(folder: Path) -> None:
    bilm = load_bilm(folder)
    assert bilm.sentences([], pool="first_last").shape == (0, 16)
    assert bilm.sentences([], layers="all").shape == (0, 3, 8)
    assert bilm.words([]) == []


def test_a_function_can_split_texts(folder: Path) -> None:
    assert load_bilm(folder).words(["a,b"], tokenizer=lambda text: text.split(","))[0].words == [
        "a",
        "b",
    ]


def test_carried_texts_continue(folder: Path) -> None:
    carrying = load_bilm(folder, state="carry")
    first, second = (carrying.sentences([["a"]]) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_allclose(first, load_bilm(folder).sentences([["a"]]), atol=1e-5)


@pytest.mark.parametrize(
    ("error", "message", "texts", "options"),
    [
        (TypeError, "not the string 'a b' alone", "a b", {}),
        (TypeError, "text 2 is nan; expected a string or a list of words", ["a", np.nan], {}),
        (TypeError, "word 1 of text 1 is 3", [[3]], {}),
        (ValueError, "pool is 'sum'; choose from first_last, max, mean", ["a"], {"pool": "sum"}),
        (ValueError, "pool is 'none'", ["a"], {"pool": "none"}),
        (ValueError, "layers is 'topp'.* Did you mean 'top'?", ["a"], {"layers": "topp"}),
        (ValueError, "layers is 3; .*a number from -3 to 2", ["a"], {"layers": 3}),
        (ValueError, r"layers is \[0, -4\]", [], {"layers": [0, -4]}),
        (ValueError, r"layers is \[\]", [], {"layers": []}),
        (ValueError, "layers is 0.5", [], {"layers": 0.5}),
        (RunError, "Did you mean 'spacy'?", ["a"], {"tokenizer": "spaci"}),
    ],
)
def test_wrong_texts_and_options_are_refused(folder, error, message, texts, options) -> None:
    with pytest.raises(error, match=message):
        load_bilm(folder).sentences(texts, **options)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_get_the_vectors_of_one_thread(folder: Path) -> None:
    bilm = load_bilm(folder, device="cpu")
    # So small a table forgets the words of one thread while another reads them.
    bilm.source._words._max_bytes = 1
    batches = [
        [[f"word{number}", f"{place}", "a"] for place in range(5 + number)] for number in range(8)
    ]
    expected = [bilm.embed(batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        for found in [list(pool.map(bilm.embed, batches)) for _ in range(5)]:
            for one, other in zip(found, expected, strict=True):
                for vectors, alone in zip(one, other, strict=True):
                    np.testing.assert_allclose(vectors, alone, atol=1e-5)
