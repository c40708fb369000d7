from pathlib import Path

import numpy as np
import pytest

from elmo_framework import load_bilm
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import save_bilm
from elmo_framework.config.parse import parse
from elmo_framework.errors import DataError
from tests.numpy_bilm import NumpyBiLm

SENTENCES = [["Wörter", "are", "words"], [], ["a"], ["are", "many", "!"], ["a"]]


def require_equal(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=1e-5)


def references(bilm: NumpyBiLm, sentences) -> list[np.ndarray]:
    return [bilm.layers(words)[:, 1:-1] if words else np.zeros((3, 0, 8)) for words in sentences]


@pytest.mark.parametrize("max_tokens", [1, 12, 4096])
def test_layers_are_returned_in_input_order(folder, numpy_bilm, max_tokens):
    bilm = load_bilm(folder)
    assert (bilm.num_layers, bilm.dim) == (3, 8)
    expected = references(numpy_bilm, SENTENCES)
    require_equal(bilm.embed(SENTENCES, max_tokens=max_tokens), expected)
    require_equal(bilm.embed_iter(iter(SENTENCES), max_tokens=max_tokens), expected)


def test_equal_sentences_have_arrays_of_their_own(folder: Path) -> None:
    arrays = load_bilm(folder).embed(SENTENCES)
    arrays[2][:] = 0
    assert (arrays[4] != 0).any()


def test_a_run_is_as_good_as_its_folder(numpy_bilm: NumpyBiLm, tmp_path: Path) -> None:
    numpy_bilm.save(tmp_path / "run" / "bilm")
    require_equal(load_bilm(tmp_path / "run").embed([["a"]]), references(numpy_bilm, [["a"]]))


def test_a_long_stream_is_read_in_parts(folder: Path, numpy_bilm: NumpyBiLm) -> None:
    taken = []

    def stream():
        for number in range(200):
            taken.append(number)
            yield ["word", str(number)]

    found = load_bilm(folder).embed_iter(stream(), max_tokens=8)
    require_equal([next(found)], references(numpy_bilm, [["word", "0"]]))
    assert len(taken) < 100
    assert len(list(found)) == 199


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 7, 4096])
def test_parts_of_a_sentence_are_its_layers(
    folder: Path, numpy_bilm: NumpyBiLm, max_tokens: int
) -> None:
    bilm = load_bilm(folder)
    for words in (["a"], ["Wörter", "are", "words", "are", "many"], []):
        vectors = np.full((3, len(words), 8), np.nan, np.float32)
        for places, dims, layers in bilm.embed_in_parts(words, max_tokens=max_tokens):
            assert layers.shape[1] <= max_tokens
            assert np.isnan(vectors[:, places, dims]).all()
            vectors[:, places, dims] = layers
        require_equal([vectors], references(numpy_bilm, [words]))


def test_parts_of_no_words_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="max_tokens is 0; it must be above 0"):
        list(load_bilm(folder).embed_in_parts(["a"], max_tokens=0))
    with pytest.raises(TypeError):
        list(load_bilm(folder).embed_in_parts("a string"))


def test_carried_batches_follow_each_other(folder: Path, numpy_bilm: NumpyBiLm) -> None:
    bilm, states, expected = load_bilm(folder, state="carry"), [None, None], []
    sentences = [["a"], ["many", "words"], ["words"], ["a", "!"]]
    for place, words in enumerate(sentences):
        layers, states[place % 2] = numpy_bilm.read(words, states[place % 2])
        expected.append(layers[:, 1:-1])
    require_equal(bilm.embed(sentences, max_tokens=8), expected)
    bilm.reset_states()
    bilm.warm_up(sentences[:2])
    require_equal(bilm.embed_iter(sentences[2:]), expected[2:])
    with pytest.raises(ValueError, match="warm_up needs state='carry'"):
        load_bilm(folder).warm_up(sentences)


def test_words_of_layers_that_read_both_sides_have_a_whole_layer(tmp_path: Path) -> None:
    encoder = {"type": "char_cnn", "embedding_dim": 4, "filters": [[1, 4]], "projection_dim": 8}
    sizes = {"num_heads": 2, "head_dim": 4, "feedforward_dim": 8, "window_size": 8}
    layers = {"type": "bidirectional_transformer", **sizes}
    raw = {"token_encoder": encoder, "context_layers": layers}
    save_bilm(parse(BiLm, raw, source="").build(), tmp_path)
    bilm = load_bilm(tmp_path)
    words = bilm.hub(["a b"])["word_emb"][0]
    np.testing.assert_allclose(words, bilm.embed([["a", "b"]])[0][0], atol=1e-6)


def test_the_outputs_of_the_hub_module(folder: Path, numpy_bilm: NumpyBiLm) -> None:
    outputs = load_bilm(folder).hub(["Wörter are  words", ["a"], ""])
    layers = references(numpy_bilm, [["Wörter", "are", "words"], ["a"]])
    shapes = {name: values.shape for name, values in outputs.items()}
    assert shapes == {
        "word_emb": (3, 3, 4),
        "lstm_outputs1": (3, 3, 8),
        "lstm_outputs2": (3, 3, 8),
        "elmo": (3, 3, 8),
        "default": (3, 8),
    }
    for row, each in enumerate(layers):
        length = each.shape[1]
        np.testing.assert_allclose(outputs["word_emb"][row, :length], each[0, :, :4], atol=1e-5)
        np.testing.assert_allclose(outputs["lstm_outputs2"][row, :length], each[2], atol=1e-5)
        np.testing.assert_allclose(outputs["elmo"][row, :length], each.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(outputs["default"][row], each.mean(axis=(0, 1)), atol=1e-5)
        assert all((outputs[name][row, length:] == 0).all() for name in shapes if name != "default")
    assert (outputs["default"][2] == 0).all()


def test_both_signatures_of_the_hub_module(folder: Path) -> None:
    hub = load_bilm(folder).hub
    expected = hub(["Wörter are words", "a"])
    tokens = np.array([["Wörter".encode(), b"are", b"words", b""], [b"a", b"", b"", b""]], object)
    inputs = {"tokens": tokens, "sequence_len": np.array([3, 1])}
    outputs = hub(inputs=inputs, signature="tokens", as_dict=True)
    assert outputs.keys() == expected.keys()
    for name in ("word_emb", "lstm_outputs1", "lstm_outputs2", "elmo"):
        assert outputs[name].shape[1] == 4  # the width of `tokens`
        np.testing.assert_array_equal(outputs[name][:, :3], expected[name])
        assert (outputs[name][:, 3] == 0).all()
    np.testing.assert_allclose(outputs["default"], expected["default"], atol=1e-6)
    np.testing.assert_array_equal(hub(inputs, "tokens", as_dict=False), outputs["default"])
    np.testing.assert_array_equal(hub.signatures["tokens"](**inputs)["elmo"], outputs["elmo"])
    strings = hub.signatures["default"](np.array(["Wörter are words".encode(), b"a"], object))
    np.testing.assert_array_equal(strings["elmo"], expected["elmo"])
    for text in ("the", b"the"):
        with pytest.raises(TypeError, match="sentence 1 is a list of words, not the string 'the'"):
            hub({"tokens": [text], "sequence_len": [1]}, "tokens")


@pytest.mark.parametrize(
    ("inputs", "signature", "problem"),
    [
        (["a"], "token", "signature is 'token'; choose from default, tokens"),
        (["a"], "tokens", "takes a dict with 'tokens' and 'sequence_len'"),
        ({"tokens": [["a"]]}, "tokens", r"expected \['tokens', 'sequence_len'\]"),
        ({"text": ["a"]}, "default", r"found the keys \['text'\]; expected \['strings'\]"),
        ({"tokens": [["a"], []], "sequence_len": [1, 0]}, "tokens", "some rows are shorter than 1"),
        ({"tokens": [["a"]], "sequence_len": [2]}, "tokens", "expected 1 numbers from 0 to 1"),
        ({"tokens": [["a"]], "sequence_len": []}, "tokens", "expected 1 numbers from 0 to 1"),
    ],
)
def test_wrong_inputs_of_the_hub_module_are_named(
    inputs: object, signature: str, problem: str, folder: Path
) -> None:
    with pytest.raises(ValueError, match=problem):
        load_bilm(folder).hub(inputs, signature)


def test_wrong_arguments_are_named(folder: Path) -> None:
    with pytest.raises(TypeError, match="a sentence is a list of words, not the string 'A word'"):
        load_bilm(folder).embed(["A word"])
    with pytest.raises(ValueError, match="state is 'rest'; choose from carry, reset"):
        load_bilm(folder, state="rest")
    with pytest.raises(DataError) as caught:
        load_bilm("smal")
    assert str(caught.value) == (
        "'smal' is neither a folder nor the name of a biLM; "
        "choose from medium, mini, original, original-5.5b, small. Did you mean 'small'?"
    )
