import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import pytest
import torch

from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.embedders.context2vec import Context2vecTokenEmbedder
from elmo_framework.embedders.text_embedder import TokenEmbedder
from elmo_framework.errors import DataError
from tests.unit.embedders.published_files import (
    CONTEXT2VEC_UNIT,
    CONTEXT2VEC_WORDS,
    write_context2vec,
)

HIDDEN = 2 * CONTEXT2VEC_UNIT
SENTENCES = ["The dog ran", "dog", "the cat ran dog"]


@pytest.fixture
def params(tmp_path: Path) -> Path:
    return write_context2vec(tmp_path)


def embedder(params: Path, **keys: Any) -> Context2vecTokenEmbedder:
    config = {"type": "context2vec", "model_file": str(params), **keys}
    built = parse(TokenEmbedder, config, source="a.jsonnet").build()
    assert isinstance(built, Context2vecTokenEmbedder)
    return built


def embed(built: Context2vecTokenEmbedder, sentences: Sequence[str] = SENTENCES) -> np.ndarray:
    return built(collate_text([each.split() for each in sentences])).numpy()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def states(arrays: dict[str, np.ndarray], name: str, ids: Sequence[int]) -> list[np.ndarray]:
    """Chainer's LSTM over words: the four gates of a unit stand beside each other, a, i, f, o."""
    hidden, memory, found = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for word in ids:
        vector = arrays[f"{name}_embed/W"][word]
        gates = arrays[f"{name}_1/upward/W"] @ vector + arrays[f"{name}_1/upward/b"]
        gates = gates + arrays[f"{name}_1/lateral/W"] @ hidden
        a, i, f, o = (gates[place::4] for place in range(4))
        memory = np.tanh(a) * sigmoid(i) + memory * sigmoid(f)
        hidden = sigmoid(o) * np.tanh(memory)
        found.append(hidden)
    return found


def context(arrays: dict[str, np.ndarray], ids: Sequence[int], place: int) -> np.ndarray:
    """The vector of what stands around one word of a sentence."""
    left = states(arrays, "l2r", [1, *ids[:place]])[-1]
    right = states(arrays, "r2l", [2, *reversed(ids[place + 1 :])])[-1]
    if "l3/W" in arrays:
        merged = arrays["l3/W"] @ np.concatenate([left, right]) + arrays["l3/b"]
        return arrays["l4/W"] @ np.maximum(merged, 0) + arrays["l4/b"]
    halves = (
        arrays["lp_l2r/W"] @ left + arrays["lp_l2r/b"],
        arrays["lp_r2l/W"] @ right + arrays["lp_r2l/b"],
    )
    return np.concatenate(halves)


def reference(params: Path, sentence: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the contexts and of the targets of a sentence."""
    with np.load(params.parent / "model") as held:
        arrays = {name: held[name].astype(np.float64) for name in held.files}
    ids = [
        CONTEXT2VEC_WORDS.index(w) if w in CONTEXT2VEC_WORDS else 0
        for w in sentence.lower().split()
    ]
    targets = arrays["loss_func/W"][ids]
    contexts = np.array([context(arrays, ids, place) for place in range(len(ids))])
    return contexts, targets / np.linalg.norm(targets, axis=1, keepdims=True)


@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize(
    ("vectors", "chosen"), [("both", [0, 1]), ("context", [0]), ("target", [1])]
)
def test_the_vectors_are_those_of_the_network_written_down(tmp_path, deep, vectors, chosen):
    params = write_context2vec(tmp_path, deep=deep)
    built = embedder(params, vectors=vectors)

    found = embed(built)

    assert found.shape == (3, 4, built.output_dim)
    for row, sentence in zip(found, SENTENCES, strict=True):
        parts = reference(params, sentence)
        expected = np.concatenate([parts[number] for number in chosen], axis=1)
        np.testing.assert_allclose(row[: len(expected)], expected, atol=2e-6)
        assert not row[len(expected) :].any()


def test_the_word_itself_has_no_part_in_its_context(params):
    built = embedder(params, vectors="context")

    [first, second] = embed(built, ["the dog ran", "the ran ran"])

    np.testing.assert_array_equal(first[1], second[1])
    assert np.abs(first[0] - second[0]).max() > 1e-3


def test_a_batch_equals_its_sentences_one_by_one(params):
    built = embedder(params)

    for row, sentence in zip(embed(built), SENTENCES, strict=True):
        (alone,) = embed(built, [sentence])
        np.testing.assert_allclose(row[: len(alone)], alone, atol=1e-6)


def test_a_sentence_without_words_is_zero(params):
    found = embedder(params)(collate_text([["dog"], []]))

    assert not found[1].any()


def test_context2vec_has_no_weights_but_a_file_reference(params):
    built = embedder(params)
    embed(built)

    assert list(built.parameters()) == []
    assert built.state_dict() == {}
    assert built.reference.path == params
    digest = built.reference.digest
    with (params.parent / "model").open("ab") as file:
        file.write(b" ")
    assert embedder(params).reference.digest != digest


def test_it_can_be_measured_before_it_is_read(params):
    with torch.device("meta"):
        assert embedder(params).output_dim == 2 * HIDDEN


def problem(params: Path) -> str:
    with pytest.raises(DataError) as raised:
        embed(embedder(params))
    return str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("unit\t2\n", "", "'unit' is missing; needed: model_file, words_file, unit, deep"),
        ("deep\tyes", "deep\ttrue", "unit is '2' and deep is 'true'; expected a number, and yes"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, old, new, expected):
    params.write_text(params.read_text().replace(old, new))

    assert problem(params).startswith(f"{params}: {expected}")


def test_file_missing_next_to_the_parameters_is_named(params):
    (params.parent / "words.targets").unlink()

    words = params.parent / "words.targets"
    assert problem(params) == f"{words}: is named by {params} and does not exist"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("6 4\n", "6 5\n", ":1: found '6 5', expected the number of words and 4"),
        ("6 4\n", "7 4\n", ": found 6 words, expected 7 (see the first line)"),
        ("6 4\n", "5 4\n", ":7: expected 5 words (see the first line), found more"),
        ("dog ", "dog x", ":6: not a vector: could not convert string to float: 'x"),
    ],
)
def test_words_that_do_not_fit_are_refused(params, old, new, expected):
    words = params.parent / "words.targets"
    words.write_text(words.read_text().replace(old, new))

    assert problem(params).startswith(f"{words}{expected}")


def test_a_torn_line_is_refused(params):
    words = params.parent / "words.targets"
    lines = words.read_text().splitlines()
    lines[5] = " ".join(lines[5].split()[:2])
    words.write_text("".join(f"{line}\n" for line in lines))

    assert problem(params) == f"{words}:6: found 1 number, expected 4"


def test_arrays_that_do_not_fit_are_refused(params):
    model = params.parent / "model"
    with np.load(model) as held:
        arrays = {name: held[name] for name in held.files if name != "l4/b"}
    with model.open("wb") as file:
        np.savez(file, **arrays)
    assert problem(params) == f"{model}: expected an array l4/b of the shape (4,), found none"

    arrays["l4/b"] = np.zeros(3)
    with model.open("wb") as file:
        np.savez(file, **arrays)
    assert problem(params) == f"{model}: expected an array l4/b of the shape (4,), found (3,)"

    model.write_bytes(b"no arrays")
    assert problem(params).startswith(f"{model}: not a Chainer model file: ")


@pytest.mark.parametrize("error", [zlib.error, NotImplementedError, RuntimeError, TokenError])
def test_whatever_a_damaged_file_raises_is_one_message(params, monkeypatch, error):
    def fail(*arguments, **keywords):
        raise error("damaged")

    monkeypatch.setattr(np, "load", fail)
    assert problem(params).endswith("model: not a Chainer model file: damaged")
