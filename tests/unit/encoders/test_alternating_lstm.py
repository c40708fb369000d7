import pytest
import torch

import elmo_framework.encoders.lstm  # noqa: F401
from elmo_framework.errors import BuildError
from elmo_framework.nn.packing import reversed_rows
from tests.unit.encoders import sequences
from tests.unit.encoders.sequences import LENGTHS, MASK

ONE = {"type": "alternating_lstm", "hidden_size": 4, "num_layers": 1}
DEEP = {**ONE, "num_layers": 3, "recurrent_dropout_probability": 0.5}


def test_every_second_layer_reads_from_the_end():
    encoder = sequences.encoder({**ONE, "num_layers": 2})
    one = sequences.encoder(ONE)
    inputs = sequences.inputs()

    one.layers[0].load_state_dict(encoder.layers[0].state_dict())
    below = one(inputs, MASK)
    above = sequences.encoder(ONE, input_dim=4)
    above.layers[0].load_state_dict(encoder.layers[1].state_dict())
    turned = above(reversed_rows(below, MASK), MASK)

    torch.testing.assert_close(encoder(inputs, MASK), reversed_rows(turned, MASK))


def test_recurrent_dropout_acts_in_training_only():
    encoder = sequences.encoder(DEEP)
    still = [encoder(sequences.inputs(), MASK) for _ in range(2)]
    encoder.train()
    moving = [encoder(sequences.inputs(), MASK) for _ in range(2)]

    assert torch.equal(*still)
    assert not torch.equal(*moving)


def test_rows_without_words_are_zero():
    encoder = sequences.encoder(DEEP)
    mask = torch.zeros(len(LENGTHS), 2, dtype=torch.bool)

    assert not encoder(sequences.inputs()[:, :2], mask).any()


def test_a_stated_size_that_is_wrong_is_refused():
    with pytest.raises(BuildError, match="input_size is 7 but the input has dimension 3"):
        sequences.encoder({**ONE, "input_size": 7})
