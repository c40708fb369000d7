import copy

import pytest
import torch
from torch import nn

import elmo_framework.encoders.encoder
import elmo_framework.encoders.feedforward
import elmo_framework.encoders.lstm  # noqa: F401
from elmo_framework.encoders.lstm import RecurrentEncoder
from elmo_framework.errors import BuildError, ConfigError
from elmo_framework.kernels import packed_product
from elmo_framework.nn.feedforward import Layer
from tests.unit.encoders import sequences
from tests.unit.encoders.sequences import INPUT_DIM, LENGTHS, MASK

LSTM = {"type": "lstm", "hidden_size": 2}
DEEP = {**LSTM, "num_layers": 2, "bidirectional": True, "dropout": 0.5}
FEEDFORWARD = {
    "type": "feedforward",
    "feedforward": {"num_layers": 2, "hidden_dims": [4, 2], "activations": ["tanh", "linear"]},
}
COMPOSED = {"type": "compose", "encoders": [FEEDFORWARD, DEEP]}
STACKED = {"type": "stacked_bidirectional_lstm", "hidden_size": 2, "num_layers": 2}
ALTERNATING = {"type": "alternating_lstm", "hidden_size": 4, "num_layers": 1}
ALTERNATING_DEEP = {**ALTERNATING, "num_layers": 3, "recurrent_dropout_probability": 0.5}
ALL = [
    *(LSTM, DEEP, {**DEEP, "type": "gru"}, FEEDFORWARD, COMPOSED, "pass_through", STACKED),
    ALTERNATING,
    ALTERNATING_DEEP,
    {**ALTERNATING_DEEP, "use_highway": False},
    {**ALTERNATING_DEEP, "use_input_projection_bias": False},
]
EACH = pytest.mark.parametrize("config", ALL, ids=str)


@EACH
def test_padding_changes_nothing(config):
    sequences.check_padding_changes_nothing(sequences.encoder(config))


@EACH
def test_a_batch_equals_its_rows_one_by_one(config):
    sequences.check_a_batch_equals_its_rows(sequences.encoder(config))


@EACH
def test_gradients_reach_every_parameter(config):
    sequences.check_gradients(sequences.encoder(config))


@EACH
def test_accelerators_read_the_same(config):
    sequences.check_accelerators_read_the_same(sequences.encoder(config))


@EACH
def test_the_width_is_as_stated(config):
    encoder = sequences.encoder(config)

    encoded = encoder(sequences.inputs(), MASK)

    assert encoder.input_dim == INPUT_DIM
    assert encoded.shape == (len(LENGTHS), max(LENGTHS), encoder.output_dim)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_recurrent_encoder_is_torchs(kind):
    encoder = sequences.encoder({**DEEP, "type": kind})
    words = sequences.inputs()[1:2]  # the row without padding

    expected, _ = getattr(encoder, kind)(words)

    torch.testing.assert_close(encoder(words, MASK[1:2]), expected)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_dropout_acts_between_layers_in_training_only(kind):
    encoder = sequences.encoder({**DEEP, "type": kind})
    still = [encoder(sequences.inputs(), MASK) for _ in range(2)]
    encoder.train()
    moving = [encoder(sequences.inputs(), MASK) for _ in range(2)]

    assert torch.equal(*still)
    assert not torch.equal(*moving)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_frozen_weights_are_used_for_predictions_only(kind):
    encoder, words = sequences.encoder({**DEEP, "type": kind}).float(), sequences.inputs().float()
    expected = encoder(words, MASK)
    encoder.freeze("float32")
    copied = copy.deepcopy(encoder)
    encoder(words, MASK).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
    with torch.no_grad():
        torch.testing.assert_close(encoder(words, MASK), expected, atol=1e-6, rtol=1e-5)
        for parameter in (*encoder.parameters(), *copied.parameters()):
            parameter.zero_()
        assert not copied(words, MASK).any(), "a copy is not frozen"
        is_packed = kind == "lstm" and packed_product._library() is not None
        assert encoder(words, MASK).any() == is_packed
        assert not encoder.train()(words, MASK).any()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_dropout_of_one_layer_is_refused(kind):
    with pytest.raises(BuildError, match="acts between layers and num_layers is 1") as raised:
        sequences.encoder({**LSTM, "type": kind, "dropout": 0.5})

    assert str(raised.value).endswith(
        "Encoder: dropout is 0.5, but acts between layers and num_layers is 1; "
        "set num_layers, or remove dropout"
    )


@pytest.mark.parametrize("config", [LSTM, {**LSTM, "type": "gru"}, {"type": "pass_through"}])
def test_a_stated_size_that_is_wrong_is_refused(config):
    with pytest.raises(BuildError, match="input_size is 7 but the input has dimension 3"):
        sequences.encoder({**config, "input_size": 7})


def test_passing_through_changes_no_word():
    encoded = sequences.encoder("pass_through")(sequences.inputs(), MASK)

    assert torch.equal(encoded[MASK], sequences.inputs()[MASK])


def test_composed_encoders_follow_each_other():
    composed = sequences.encoder(COMPOSED)
    first, second = composed.encoders

    encoded = composed(sequences.inputs(), MASK)

    assert (first.output_dim, second.input_dim) == (2, 2)
    assert torch.equal(encoded, second(first(sequences.inputs(), MASK), MASK))


def test_composing_nothing_is_refused():
    with pytest.raises(BuildError, match="encoders is empty; name at least one"):
        sequences.encoder({"type": "compose", "encoders": []})


def test_single_value_applies_to_all_layers():
    config = {"num_layers": 2, "hidden_dims": 4, "activations": "relu", "dropout": 0.5}

    encoder = sequences.encoder({"type": "feedforward", "feedforward": config})

    assert encoder.feedforward.layers == (Layer(4, "relu", 0.5), Layer(4, "relu", 0.5))


def test_a_list_of_another_length_is_refused():
    config = {"num_layers": 2, "hidden_dims": [4], "activations": "relu"}

    with pytest.raises(ConfigError, match="hidden_dims has 1 item, but num_layers is 2"):
        sequences.encoder({"type": "feedforward", "feedforward": config})


def test_a_stated_width_of_a_feed_forward_network_is_checked():
    config = {**FEEDFORWARD["feedforward"], "input_dim": 9}

    with pytest.raises(BuildError, match="input_dim is 9 but the input has dimension 3"):
        sequences.encoder({"type": "feedforward", "feedforward": config})


def test_a_recurrent_encoder_may_hold_other_modules():
    class Scaled(RecurrentEncoder):
        kind = nn.GRU

        def __init__(self) -> None:
            super().__init__(INPUT_DIM, 2)
            self.scale = nn.Linear(2, 2)

    sequences.check_a_batch_equals_its_rows(Scaled().double().eval())


def test_a_recurrent_network_is_of_some_kind():
    with pytest.raises(TypeError, match=r"abstract.*kind"):
        RecurrentEncoder(INPUT_DIM, 2)


def test_stacked_layers_read_both_directions_of_the_one_below():
    encoder = sequences.encoder(STACKED)
    below, above = (
        sequences.encoder({**STACKED, "num_layers": 1}, input_dim=dim) for dim in (INPUT_DIM, 4)
    )
    for layer, one in enumerate((below, above)):
        one.forward_layers[0].load_state_dict(encoder.forward_layers[layer].state_dict())
        one.backward_layers[0].load_state_dict(encoder.backward_layers[layer].state_dict())

    encoded = encoder(sequences.inputs(), MASK)
    torch.testing.assert_close(encoded, above(below(sequences.inputs(), MASK), MASK))

    # The first half of the dimensions has read the words before, the other half those after.
    later = sequences.inputs()
    later[:, 3:] = 0
    difference = (encoded - encoder(later, MASK)).abs().sum(dim=0)
    one_layer = (below(sequences.inputs(), MASK) - below(later, MASK)).abs().sum(dim=0)
    assert not one_layer[:3, :2].any()
    assert one_layer[:3, 2:].any()
    assert difference[:3].any()


@pytest.mark.parametrize("kind", ["alternating_lstm", "stacked_bidirectional_lstm"])
@pytest.mark.parametrize("place", ["output", "recurrence"])
def test_dropout_of_the_recurrence_leaves_the_first_word_alone(kind, place):
    config = {"type": kind, "hidden_size": 9, "num_layers": 1, "recurrent_dropout_place": place}
    encoder = sequences.encoder({**config, "recurrent_dropout_probability": 0.5})
    still = encoder(sequences.inputs(), MASK)
    moving = encoder.train()(sequences.inputs(), MASK)
    assert torch.equal(still[:, 0, :9], moving[:, 0, :9]) is (place == "recurrence")
    assert not torch.equal(still[:, 1, :9], moving[:, 1, :9])


def test_layer_dropout_is_between_layers_in_training():
    dropped = {**STACKED, "layer_dropout_probability": 0.5}
    encoder, one = sequences.encoder(dropped), sequences.encoder({**dropped, "num_layers": 1})
    for each, varies in ((encoder, True), (one, False)):
        still = [each(sequences.inputs(), MASK) for _ in range(2)]
        each.train()
        moving = [each(sequences.inputs(), MASK) for _ in range(2)]
        assert torch.equal(*still)
        assert torch.equal(*moving) is not varies
