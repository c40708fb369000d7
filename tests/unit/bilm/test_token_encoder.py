import numpy as np
import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.files.weights_hdf5 import has_bilm_tf_parts
from elmo_framework.bilm.token_encoder import CharCnnTokenEncoder, TokenEncoder
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled
from elmo_framework.errors import BuildError, ConfigError
from tests.numpy_bilm import NumpyBiLm

WORDS = ["", "a", "<S>", "characters-and-more", "Wörter"]


def ids(bilm: BiLm, words) -> torch.Tensor:
    return torch.from_numpy(bilm.token_encoder.indexer.ids(words))


def test_words_equal_the_numpy_reference(numpy_bilm: NumpyBiLm, bilm: BiLm) -> None:
    vectors = bilm.token_encoder(ids(bilm, WORDS)).detach()
    for word, vector in zip(WORDS, vectors, strict=True):
        expected = numpy_bilm.word(numpy_bilm.symbols(word))
        np.testing.assert_allclose(vector, expected, atol=1e-12)


def test_word_positions_do_not_depend_on_shape(bilm: BiLm) -> None:
    rows = ids(bilm, WORDS[:4])
    flat, square = bilm.token_encoder(rows), bilm.token_encoder(rows.view(2, 2, -1))
    assert torch.equal(square, flat.view(2, 2, -1))


def test_defaults_are_the_published_encoder() -> None:
    assert filled(parse(TokenEncoder, "char_cnn", source="test")) == {
        "type": "char_cnn",
        "embedding_dim": 16,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "num_highway": 2,
        "projection_dim": 512,
        "activation": "relu",
        "max_characters_per_token": 50,
        "layer_norm": False,
    }


def test_normalized_vectors_are_not_those_of_bilm_tf() -> None:
    raw = {"type": "char_cnn", "filters": [[1, 3]], "projection_dim": 4, "layer_norm": True}
    context = {"type": "elmo_lstm", "cell_size": 4, "projection_dim": None}
    bilm = parse(BiLm, {"token_encoder": raw, "context_layers": context}, source="test").build()
    vectors = bilm.token_encoder(ids(bilm, WORDS))
    assert vectors.mean(dim=1).abs().max() < 1e-6
    assert not has_bilm_tf_parts(bilm)


def test_without_a_projection_a_word_is_as_wide_as_all_filters() -> None:
    raw = {"type": "char_cnn", "filters": [[1, 3], [2, 4]], "projection_dim": None}
    encoder = parse(TokenEncoder, raw, source="test").build()
    assert encoder.output_dim == 7
    assert encoder(torch.full((2, 3, 50), 261)).shape == (2, 3, 7)


def test_a_filter_wider_than_a_word_is_refused() -> None:
    raw = {"type": "char_cnn", "filters": [[9, 3]], "max_characters_per_token": 8}
    with pytest.raises(BuildError, match=r"9 characters wide, .* is 8; allowed: widths up to 8"):
        parse(TokenEncoder, raw, source="test").build()


@pytest.mark.parametrize("filters", [[], [[0, 3]], [[1]], [[1, 2, 3]], "wide"])
def test_malformed_filters_are_refused(filters) -> None:
    with pytest.raises(ConfigError, match="filters"):
        parse(TokenEncoder, {"type": "char_cnn", "filters": filters}, source="test")


def test_projection_starts_with_small_weights_and_no_bias() -> None:
    """Normal with the variance of one over the inputs, as in bilm-tf."""
    torch.manual_seed(0)
    encoder = CharCnnTokenEncoder(filters=[(1, 200), (2, 200)], projection_dim=300)
    assert encoder.projection is not None
    assert (encoder.projection.bias == 0).all()
    assert encoder.projection.weight.std().item() == pytest.approx(400**-0.5, rel=0.02)
