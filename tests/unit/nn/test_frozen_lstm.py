"""Packed LSTMs equal those of PyTorch in float64."""

import pytest
import torch
from torch import Tensor, nn

from elmo_framework.kernels import packed_product
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn import frozen_lstm as module
from elmo_framework.nn.frozen_lstm import FrozenLstm
from elmo_framework.nn.recurrent import read_rows

needs_compiler = pytest.mark.skipif(packed_product._library() is None, reason="needs a C compiler")
MASK = torch.arange(9) < torch.tensor([9, 3, 0, 1, 9])[:, None]


def network(hidden_size: int = 20, **options: object) -> nn.LSTM:
    torch.manual_seed(hidden_size)
    return nn.LSTM(7, hidden_size, batch_first=True, **options).eval()


def inputs() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*MASK.shape, 7, generator=generator) * MASK[:, :, None]


@needs_compiler
@pytest.mark.parametrize("hidden_size", [5, 16, 20])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_outputs_and_last_states_equal_those_of_pytorch(
    hidden_size: int, num_layers: int, bidirectional: bool, bias: bool
) -> None:
    lstm = network(hidden_size, num_layers=num_layers, bidirectional=bidirectional, bias=bias)
    packed = FrozenLstm.of(lstm)
    assert packed is not None
    found = packed.read(inputs(), MASK)
    expected = read_rows(lstm.double(), inputs().double(), MASK)
    torch.testing.assert_close(found, expected, check_dtype=False, atol=2e-6, rtol=1e-5)


@needs_compiler
@torch.no_grad()
def test_no_rows_have_no_outputs() -> None:
    packed = FrozenLstm.of(network(bidirectional=True))
    assert packed is not None
    outputs, last = packed.read(inputs()[:0], MASK[:0])
    assert (outputs.shape, last.shape) == ((0, 9, 40), (0, 40))


@needs_compiler
def test_other_networks_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FrozenLstm.of(network(proj_size=4)) is None
    assert FrozenLstm.of(network().double()) is None
    monkeypatch.setattr(module, "LARGEST_WEIGHT", 1000)
    assert FrozenLstm.of(network()) is None


@needs_compiler
@torch.no_grad()
def test_other_inputs_are_not_read() -> None:
    packed = FrozenLstm.of(network())
    assert packed is not None
    assert packed.read(inputs().double(), MASK) is None
    with accelerator_code():
        assert packed.read(inputs(), MASK) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert packed.read(inputs(), MASK) is None
