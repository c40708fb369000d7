import itertools

import numpy as np
import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.load import bilm_files, read_bilm
from elmo_framework.bilm.layer_output import LayerOutput, without_boundaries
from elmo_framework.config.parse import parse
from elmo_framework.data.text import collate_text
from elmo_framework.errors import BuildError
from tests.numpy_bilm import NumpyBiLm
from tests.unit.conftest import SENTENCES

SETTINGS = [
    {},
    {"use_skip_connections": False},
    {"cell_clip": None, "proj_clip": None},
    {"cell_clip": 0.5, "proj_clip": 0.4},
    {"n_layers": 1, "n_highway": 0},
    {"n_layers": 3, "n_highway": 1},
    {"projection_dim": 7},
    {"projection_dim": 9, "dim": 9},
    {"activation": "tanh", "max_characters_per_token": 50},
]
PUBLISHED_SIZES = {
    (1024, 128, 1): 13_593_296,
    (2048, 256, 1): 28_027_728,
    (4096, 512, 2): 93_600_848,
}


def characters(bilm: BiLm, sentences) -> torch.Tensor:
    indexer = bilm.token_encoder.indexer
    return collate_text(sentences, [indexer]).ids[indexer.key]


def read(bilm: BiLm, sentences, state=None) -> LayerOutput:
    return bilm(characters(bilm, sentences), state)


def sentence(output: LayerOutput, row: int) -> torch.Tensor:
    return output.layers[:, row, output.mask[row]].detach()


@pytest.mark.parametrize("changes", SETTINGS)
def test_a_batch_equals_the_numpy_reference(changes: dict, tmp_path) -> None:
    numpy_bilm = NumpyBiLm.random(scale=1.0, **changes)
    output = read(read_bilm(bilm_files(numpy_bilm.save(tmp_path))).double(), SENTENCES)
    for row in (0, 2, 3):
        expected = numpy_bilm.layers(SENTENCES[row])
        np.testing.assert_allclose(sentence(output, row), expected, atol=1e-10)


def test_each_row_continues_from_its_own_state(numpy_bilm: NumpyBiLm, bilm: BiLm) -> None:
    first = read(bilm, SENTENCES)
    second = read(bilm, SENTENCES[::-1], first.state)
    _, state = numpy_bilm.read(SENTENCES[0])
    expected = numpy_bilm.layers(SENTENCES[3], state)
    np.testing.assert_allclose(sentence(second, 0), expected, atol=1e-10)


def test_a_row_without_words_is_zeros_and_keeps_its_state(bilm: BiLm) -> None:
    first = read(bilm, SENTENCES)
    second = read(bilm, [[] for _ in SENTENCES], first.state)
    assert (first.layers[:, 1] == 0).all()
    assert not first.mask[1].any()
    torch.testing.assert_close(second.state, first.state)


def test_the_mask_holds_the_boundaries(bilm: BiLm) -> None:
    output = read(bilm, SENTENCES)
    assert output.mask.sum(dim=1).tolist() == [5, 0, 3, 6]
    assert (output.layers[:, ~output.mask] == 0).all()
    assert output.layers.shape == (bilm.num_layers, 4, 6, bilm.output_dim)


def test_without_boundaries_leaves_the_words(bilm: BiLm) -> None:
    output = read(bilm, SENTENCES)
    words = without_boundaries(output.layers[2], output.mask)
    assert words.shape == (4, 4, bilm.output_dim)
    assert torch.equal(words[0, :3], output.layers[2, 0, 1:4])
    assert (words[0, 3] == 0).all()
    assert (words[1] == 0).all()


def test_padding_changes_nothing(bilm: BiLm) -> None:
    wider = torch.nn.functional.pad(characters(bilm, SENTENCES), (0, 0, 0, 3))
    output, plain = bilm(wider), read(bilm, SENTENCES)
    torch.testing.assert_close(output.layers[:, :, :6], plain.layers)
    torch.testing.assert_close(output.state, plain.state)


def test_a_batch_equals_its_rows_one_by_one(bilm: BiLm) -> None:
    together = read(bilm, SENTENCES)
    for row, words in enumerate(SENTENCES):
        alone = read(bilm, [words])
        torch.testing.assert_close(sentence(alone, 0), sentence(together, row))


def test_a_sentence_has_the_same_bits_in_batches_of_one_shape(bilm: BiLm) -> None:
    bilm.float()
    again = read(bilm, SENTENCES)
    assert torch.equal(read(bilm, SENTENCES).layers, again.layers)


def test_vectors_do_not_depend_on_other_sentences(bilm: BiLm) -> None:
    bilm.float()
    expected = sentence(read(bilm, [SENTENCES[0]]), 0)
    for order in itertools.permutations(range(4)):
        output = read(bilm, [SENTENCES[row] for row in order])
        found = sentence(output, order.index(0))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_gradients_reach_every_parameter(bilm: BiLm) -> None:
    read(bilm, SENTENCES).layers.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in bilm.parameters())


def test_deduplicated_words_have_the_same_gradients(bilm: BiLm) -> None:
    ids = characters(bilm, [["a", "b", "a"], ["b", "a"]])
    weights = torch.randn(2, 5, bilm.output_dim, dtype=torch.double)
    (bilm(ids).layers[0] * weights).sum().backward()
    once = [parameter.grad.clone() for parameter in bilm.token_encoder.parameters()]
    bilm.zero_grad()
    words = [["<S>", "a", "b", "a", "</S>"], ["<S>", "b", "a", "</S>"]]
    each = bilm.token_encoder(characters(bilm, words)).repeat(1, 1, 2)
    (each * weights).flatten(0, 1)[[0, 1, 2, 3, 4, 5, 6, 7, 8]].sum().backward()
    for parameter, expected in zip(bilm.token_encoder.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, expected)


@pytest.mark.parametrize(("sizes", "expected"), PUBLISHED_SIZES.items())
def test_published_models_have_the_published_size(sizes, expected: int) -> None:
    cell_size, projection_dim, num_highway = sizes
    raw = {
        "token_encoder": {"num_highway": num_highway, "projection_dim": projection_dim},
        "context_layers": {"cell_size": cell_size, "projection_dim": projection_dim},
    }
    raw["token_encoder"]["type"], raw["context_layers"]["type"] = "char_cnn", "elmo_lstm"
    with torch.device("meta"):
        bilm = parse(BiLm, raw, source="test").build()
    assert sum(parameter.numel() for parameter in bilm.parameters()) == expected
    assert bilm.output_dim == 2 * projection_dim


def test_the_description_builds_the_same_again(bilm: BiLm) -> None:
    again = parse(BiLm, bilm.description, source="test").build()
    assert again.description == bilm.description
    assert again.load_state_dict(bilm.state_dict()).missing_keys == []


def test_parts_of_different_width_are_refused() -> None:
    raw = {
        "token_encoder": {"type": "char_cnn", "filters": [[1, 4]], "projection_dim": 4},
        "context_layers": {"type": "elmo_lstm", "cell_size": 8, "projection_dim": 6},
    }
    with pytest.raises(BuildError, match=r"vectors are 4 wide and .* context layers 6"):
        parse(BiLm, raw, source="test").build()
