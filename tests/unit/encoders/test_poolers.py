import numpy as np
import pytest
import torch

import elmo_framework.encoders.lstm
import elmo_framework.encoders.pooler  # noqa: F401
from elmo_framework.errors import BuildError
from tests.unit.encoders import sequences
from tests.unit.encoders.sequences import INPUT_DIM, LENGTHS, MASK

CNN = {"type": "cnn", "num_filters": 4, "ngram_filter_sizes": [1, 3, 7]}
ALL = [
    CNN,
    {**CNN, "output_dim": 2, "conv_layer_activation": "tanh"},
    "bag_of_embeddings",
    {"type": "bag_of_embeddings", "averaged": True},
    "max",
    "concat_pooling",
    "self_attentive",
    {"type": "lstm", "hidden_size": 2, "num_layers": 2, "bidirectional": True},
    {"type": "gru", "hidden_size": 2, "bidirectional": True},
    {**CNN, "ngram_filter_sizes": [1, 3], "short_sequences": "zero"},
]
EACH = pytest.mark.parametrize("config", ALL, ids=str)


@EACH
def test_padding_changes_nothing(config):
    sequences.check_padding_changes_nothing(sequences.pooler(config))


@EACH
def test_a_batch_equals_its_rows_one_by_one(config):
    sequences.check_a_batch_equals_its_rows(sequences.pooler(config))


@EACH
def test_gradients_reach_every_parameter(config):
    sequences.check_gradients(sequences.pooler(config))


@EACH
def test_empty_sequence_is_zeros_of_the_output_dim(config):
    pooler = sequences.pooler(config)

    pooled = pooler(sequences.inputs(), MASK)

    assert pooled.shape == (len(LENGTHS), pooler.output_dim)
    assert not pooled[LENGTHS.index(0)].any()


@pytest.mark.parametrize("activation", ["relu", "tanh", "linear"])
def test_the_convolutions_are_windows_times_filters(activation):
    pooler = sequences.pooler({**CNN, "conv_layer_activation": activation})
    function = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "linear": lambda x: x}
    pooled = pooler(sequences.inputs(), MASK).detach().numpy()

    for row, length in enumerate(LENGTHS):
        if not length:
            continue
        expected = []
        for width, convolution in zip([1, 3, 7], pooler.convolutions, strict=True):
            words = np.zeros((max(length, width), INPUT_DIM))
            words[:length] = sequences.inputs()[row, :length]
            weight, bias = (value.detach().numpy() for value in convolution.parameters())
            windows = [words[at : at + width].T for at in range(len(words) - width + 1)]
            values = [np.einsum("fdw,dw->f", weight, window) + bias for window in windows]
            expected.append(function[activation](np.array(values)).max(axis=0))
        np.testing.assert_allclose(pooled[row], np.concatenate(expected), atol=1e-12)


def test_a_filter_longer_than_the_sequence_gives_zero():
    padded, zero = (
        sequences.pooler({**CNN, "short_sequences": short})(sequences.inputs(), MASK)
        for short in ("pad", "zero")
    )

    is_short = np.array(LENGTHS)[:, None] < np.repeat([1, 3, 7], CNN["num_filters"])
    assert 0 < is_short.sum() < is_short.size
    assert not zero[torch.tensor(is_short)].any()
    torch.testing.assert_close(zero, padded.masked_fill(torch.tensor(is_short), 0))


def test_a_projection_follows_the_convolutions():
    plain, projected = sequences.pooler(CNN), sequences.pooler({**CNN, "output_dim": 2})
    projected.convolutions.load_state_dict(plain.convolutions.state_dict())

    expected = projected.projection(plain(sequences.inputs(), MASK))

    torch.testing.assert_close(projected(sequences.inputs(), MASK)[:2], expected[:2])


def test_concat_pooling_is_last_maximum_and_mean():
    pooled = sequences.pooler("concat_pooling")(sequences.inputs(), MASK)

    for row, length in enumerate(LENGTHS):
        if length:
            words = sequences.inputs()[row, :length].numpy()
            expected = np.concatenate([words[-1], words.max(axis=0), words.mean(axis=0)])
            np.testing.assert_allclose(pooled[row], expected, atol=1e-12)


def test_a_bag_adds_or_averages():
    added = sequences.pooler("bag_of_embeddings")(sequences.inputs(), MASK)
    averaged = sequences.pooler(ALL[3])(sequences.inputs(), MASK)

    torch.testing.assert_close(added[0], sequences.inputs()[0, :2].sum(dim=0))
    torch.testing.assert_close(averaged[0], added[0] / 2)


def test_lstm_state_is_that_after_the_last_word():
    pooler = sequences.pooler(ALL[7])
    outputs, _ = pooler.lstm(sequences.inputs()[:1, :2])

    expected = torch.cat([outputs[0, -1, :2], outputs[0, 0, 2:]])

    torch.testing.assert_close(pooler(sequences.inputs(), MASK)[0], expected)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (CNN, "embedding_dim"),
        ({"type": "bag_of_embeddings"}, "embedding_dim"),
        ({"type": "lstm", "hidden_size": 2}, "input_size"),
    ],
)
def test_a_stated_size_that_is_wrong_is_refused(config, key):
    with pytest.raises(BuildError, match=f"{key} is 7 but the input has dimension 3"):
        sequences.pooler({**config, key: 7})


def test_a_self_attentive_pooler_averages_by_learned_weights():
    pooler = sequences.pooler("self_attentive")

    pooled = pooler(sequences.inputs(), MASK).detach().numpy()

    (vector,) = pooler.projection.weight.detach().numpy()
    for row, length in enumerate(LENGTHS):
        if length:
            words = sequences.inputs()[row, :length].numpy()
            weights = np.exp(words @ vector)
            expected = weights @ words / weights.sum()
            np.testing.assert_allclose(pooled[row], expected, atol=1e-12)
