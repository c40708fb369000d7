import pytest
import torch

from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ContextLayers
from elmo_framework.config.parse import parse
from elmo_framework.config.resolve import filled

MASK = torch.tensor([[True] * 3, [True, False, False], [False] * 3])


def vectors() -> torch.Tensor:
    return torch.randn(3, 3, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def build(**changes) -> ContextLayers:
    raw = {"type": "elmo_lstm", "cell_size": 6, "projection_dim": 4, **changes}
    return parse(ContextLayers, raw, source="test").build(input_dim=4)


def test_directions_share_nothing(bilm: BiLm) -> None:
    layers = bilm.context_layers
    ahead = layers.read(vectors(), MASK, direction="forward").layers
    back = layers.read(vectors(), MASK, direction="backward").layers
    assert not torch.allclose(ahead, back)
    ahead.sum().backward()
    assert all(parameter.grad is None for parameter in layers.backward_lstm.parameters())


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_reading_continues_from_the_returned_state(bilm: BiLm, direction) -> None:
    layers, full = bilm.context_layers, torch.ones(3, 3, dtype=torch.bool)
    whole = layers.read(vectors(), full, direction=direction)
    first = layers.read(vectors()[:, :1], full[:, :1], direction=direction)
    rest = layers.read(vectors()[:, 1:], full[:, 1:], direction=direction, state=first.state)
    torch.testing.assert_close(torch.cat([first.layers, rest.layers], dim=2), whole.layers)
    torch.testing.assert_close(rest.state, whole.state)


def test_the_state_is_a_row_of_each_tensor_for_each_row(bilm: BiLm) -> None:
    state = bilm.context_layers.read(vectors(), MASK, direction="forward").state
    assert [tuple(tensor.shape) for tensor in state] == [(3, 4), (3, 7)] * 2
    assert all((tensor[2] == 0).all() for tensor in state)


@pytest.mark.parametrize("projection_dim", [None, 6, 9])
def test_projection_not_smaller_than_the_cell_is_left_out(projection_dim) -> None:
    layers = build(projection_dim=projection_dim)
    assert layers.output_dim == 6
    assert not any("projection" in name for name, _ in layers.named_parameters())


def test_clips_can_be_left_out() -> None:
    layers = build(cell_clip=None, projection_clip=None)
    for parameter in layers.parameters():
        torch.nn.init.constant_(parameter, 3.0)
    state = layers.read(10 * torch.ones(1, 9, 4), torch.ones(1, 9) > 0, direction="forward").state
    assert all(tensor.max() > 3 for tensor in state)


def test_dropout_is_on_in_training_only() -> None:
    layers = build(dropout=0.5).double()
    trained = layers.read(vectors(), MASK, direction="forward").layers
    plain = layers.eval().read(vectors(), MASK, direction="forward").layers
    assert not torch.allclose(trained, plain)


def test_defaults_are_the_published_layers() -> None:
    assert filled(parse(ContextLayers, "elmo_lstm", source="test")) == {
        "type": "elmo_lstm",
        "cell_size": 4096,
        "projection_dim": 512,
        "num_layers": 2,
        "cell_clip": 3.0,
        "projection_clip": 3.0,
        "use_skip_connections": True,
        "dropout": 0.0,
    }


def test_clip_rates_are_the_shares_of_a_state_at_the_limits() -> None:
    layers = build(num_layers=2)
    calm, wild = torch.zeros(2, 4), torch.tensor([[3.0, -3.0, 2.9, 0.0], [0.0, 0.0, 3.0, 0.0]])
    memory = torch.full((2, 6), -3.0)
    assert layers.clip_rates((wild, memory, calm, 0 * memory)) == {
        "projection_1": 0.375,
        "cell_1": 1.0,
        "projection_2": 0.0,
        "cell_2": 0.0,
    }


def test_clip_rates_are_empty_without_clipping() -> None:
    layers = build(cell_clip=None, projection_dim=None, num_layers=1)
    assert layers.clip_rates((torch.zeros(2, 6), torch.zeros(2, 6))) == {}
