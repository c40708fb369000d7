"""`embed_batch`: rows in, rows out, in any process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from elmo_framework import embed_batch, load_bilm
from elmo_framework.api import batches

TEXTS = ["The dogs bark .", "It rains .", ""]


@pytest.fixture(autouse=True)
def no_loaded_encoder() -> Iterator[None]:
    batches._encoder.cache_clear()
    yield
    batches._encoder.cache_clear()


@pytest.mark.parametrize("pool", ["mean", "first_last"])
def test_vectors_are_those_of_sentences(pool: Any) -> None:
    rows = embed_batch({"text": TEXTS, "id": [3, 1, 2]}, pool=pool, layers="top")
    expected = load_bilm("mini").sentences(TEXTS, pool=pool, layers="top")
    assert list(rows) == ["text", "id", "vectors"]
    assert rows["id"] == [3, 1, 2]
    np.testing.assert_array_equal(np.stack(rows["vectors"]), expected)


def test_without_a_pool_each_word_has_a_vector() -> None:
    rows = embed_batch({"text": TEXTS}, pool="none", tokenizer="whitespace")
    assert [vectors.shape for vectors in rows["vectors"]] == [(4, 256), (3, 256), (0, 256)]


def test_words_and_arrays_are_texts() -> None:
    words = np.empty(3, dtype=object)
    words[:] = [np.array(["The", "dogs", "bark", "."], dtype=object), ["It", "rains", "."], None]
    rows = embed_batch({"words": words}, column="words", output_column="v")
    expected = embed_batch({"text": TEXTS}, tokenizer="whitespace")["vectors"]
    np.testing.assert_array_equal(np.stack(rows["v"]), np.stack(expected))


def test_a_pickle_gives_the_same_vectors() -> None:
    embed = partial(embed_batch, pool="max", layers="all")
    copy = pickle.loads(pickle.dumps(embed))
    vectors = [np.stack(each({"text": TEXTS})["vectors"]) for each in (copy, embed)]
    np.testing.assert_array_equal(*vectors)


def test_a_process_loads_the_encoder_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[str]()

    def load(name: str, **options: Any) -> Any:
        loaded.append(name)
        return load_bilm(name)

    monkeypatch.setattr(batches, "load_encoder", load)
    for _ in range(3):
        embed_batch({"text": TEXTS})
    assert loaded == ["mini"]


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"column is 'txt'; .*Did you mean 'text'\?"):
        embed_batch({"text": TEXTS}, column="txt")


def test_missing_texts_have_no_words_and_other_values_are_refused() -> None:
    missing = embed_batch({"text": [None, float("nan")]})["vectors"]
    assert not np.stack(missing).any()
    for value in (b"abc", 7, ["a", None]):
        with pytest.raises(TypeError, match=r"text 1 is|word 2 of text 1 is None"):
            embed_batch({"text": [value]})


def test_scalars_of_arrow_are_texts() -> None:
    class Scalar:
        def as_py(self) -> list[str]:
            return ["It", "rains", "."]

    rows = embed_batch({"text": [Scalar()]})["vectors"]
    np.testing.assert_array_equal(rows, embed_batch({"text": [["It", "rains", "."]]})["vectors"])
