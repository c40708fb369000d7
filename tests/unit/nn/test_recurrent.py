import copy
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn

from elmo_framework.kernels import blocked_product
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn import recurrent as recurrent_module
from elmo_framework.nn.recurrent import read_rows

needs_kernel = pytest.mark.skipif(
    "float32" not in blocked_product._fast_precisions(), reason="needs a C compiler and AVX-512"
)

LENGTHS = (2, 4, 0, 1)
MASK = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


@pytest.fixture(params=[nullcontext, accelerator_code], ids=["cpu", "accelerator"])
def read(request):
    """Both ways: rows in groups of similar length, and all rows at once."""
    with request.param():
        yield read_rows


def random_inputs() -> torch.Tensor:
    return torch.randn(4, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def network(kind: type[nn.LSTM] | type[nn.GRU], **options: object) -> nn.LSTM | nn.GRU:
    torch.manual_seed(1)
    return kind(3, 2, batch_first=True, **options).double()


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def test_an_lstm_is_the_one_of_the_equations(read):
    lstm = network(nn.LSTM)
    inputs = random_inputs()
    weights = {name: value.detach().numpy() for name, value in lstm.named_parameters()}

    read_outputs, read_last = read(lstm, inputs, MASK)

    for row, length in enumerate(LENGTHS):
        hidden = memory = np.zeros(2)
        for position in range(length):
            gates = weights["weight_ih_l0"] @ inputs[row, position].numpy() + weights["bias_ih_l0"]
            gates += weights["weight_hh_l0"] @ hidden + weights["bias_hh_l0"]
            entry, forget, new, out = np.split(gates, 4)
            memory = sigmoid(forget) * memory + sigmoid(entry) * np.tanh(new)
            hidden = sigmoid(out) * np.tanh(memory)
            np.testing.assert_allclose(read_outputs[row, position].detach(), hidden, atol=1e-12)
        np.testing.assert_allclose(read_last[row].detach(), hidden, atol=1e-12)
        assert not read_outputs[row, length:].any()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_batch_equals_single_rows_without_padding(read, kind):
    recurrent = network(kind, num_layers=2, bidirectional=True)
    inputs = random_inputs()

    read_outputs, read_last = read(recurrent, inputs, MASK)

    for row, length in enumerate(LENGTHS):
        if length:
            outputs, _ = recurrent(inputs[row : row + 1, :length])
            last = torch.cat([outputs[0, -1, :2], outputs[0, 0, 2:]])
            torch.testing.assert_close(read_outputs[row, :length], outputs[0])
            torch.testing.assert_close(read_last[row], last)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_rows_are_read_under_autocast(kind):
    recurrent = network(kind, num_layers=2, bidirectional=True).float()
    inputs = random_inputs().float().requires_grad_()
    expected, expected_last = read_rows(recurrent, inputs, MASK)

    with torch.autocast("cpu", torch.bfloat16):
        read_outputs, read_last = read_rows(recurrent, inputs, MASK)
    read_last.sum().backward()

    torch.testing.assert_close(read_outputs.float(), expected, atol=0.02, rtol=0)
    torch.testing.assert_close(read_last.float(), expected_last, atol=0.02, rtol=0)
    assert inputs.grad.abs().sum() > 0


def test_an_lstm_is_read_in_float32_where_the_cpu_has_no_bfloat16(monkeypatch):
    monkeypatch.setattr(recurrent_module, "has_bfloat16", lambda: False)
    lstm = network(nn.LSTM, num_layers=2).float()
    inputs = random_inputs().to(torch.bfloat16)

    with torch.autocast("cpu", torch.bfloat16):
        read_outputs, _ = read_rows(lstm, inputs, MASK)

    expected, _ = read_rows(lstm, inputs.float(), MASK)
    torch.testing.assert_close(read_outputs, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_padding_changes_nothing(read, kind):
    recurrent = network(kind, bidirectional=True)
    inputs = random_inputs()
    changed = inputs.masked_fill(~MASK[:, :, None], 1000.0)

    read_outputs, read_last = read(recurrent, inputs, MASK)
    outputs_again, last_again = read(recurrent, changed, MASK)

    assert torch.equal(read_outputs, outputs_again)
    assert torch.equal(read_last, last_again)


def test_a_batch_without_words_gives_zeros(read):
    read_outputs, read_last = read(
        network(nn.LSTM), random_inputs(), torch.zeros(4, 5, dtype=torch.bool)
    )

    assert not read_outputs.any()
    assert not read_last.any()


def test_gradients_reach_every_parameter_and_no_padding(read):
    recurrent = network(nn.LSTM, num_layers=2, bidirectional=True)
    inputs = random_inputs().requires_grad_()

    read_outputs, read_last = read(recurrent, inputs, MASK)
    (read_outputs.sum() + read_last.sum()).backward()

    assert all(parameter.grad.abs().sum() > 0 for parameter in recurrent.parameters())
    assert torch.equal(inputs.grad.abs().sum(dim=2) > 0, MASK)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_rows_of_different_lengths_equal_single_rows(read, kind):
    recurrent = network(kind, num_layers=2, bidirectional=True)
    lengths = [12, *([1, 3, 0, 2] * 16)]
    mask = torch.arange(12) < torch.tensor(lengths)[:, None]
    inputs = torch.randn(65, 12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    inputs.requires_grad_()

    read_outputs, read_last = read(recurrent, inputs, mask)
    (read_outputs.pow(2).sum() + read_last.pow(3).sum()).backward()
    gradients = [parameter.grad.clone() for parameter in recurrent.parameters()]
    recurrent.zero_grad()
    alone = [read(recurrent, row[None], held[None]) for row, held in zip(inputs, mask, strict=True)]
    outputs, last = (torch.cat(held) for held in zip(*alone, strict=True))
    (outputs.pow(2).sum() + last.pow(3).sum()).backward()

    torch.testing.assert_close(read_outputs, outputs)
    torch.testing.assert_close(read_last, last)
    for parameter, gradient in zip(recurrent.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert torch.equal(inputs.grad.abs().sum(dim=2) > 0, mask)


def test_mostly_padded_batch_is_read_in_groups(monkeypatch):
    read = []
    one_direction = recurrent_module._read_direction

    def counting(lstm: nn.LSTM, weights: list[nn.Parameter], rows: torch.Tensor) -> torch.Tensor:
        read.append(rows.shape[0] * rows.shape[1])
        return one_direction(lstm, weights, rows)

    monkeypatch.setattr(recurrent_module, "_read_direction", counting)
    mask = torch.arange(12) < torch.tensor([12, *([2] * 63)])[:, None]
    read_rows(network(nn.LSTM), torch.zeros(64, 12, 3, dtype=torch.float64), mask)

    assert sum(read) < 0.5 * mask.numel()


@pytest.fixture
def plain_types(monkeypatch):
    """Compiled code for small sizes; the types that PyTorch's LSTM is called with."""
    types = set()
    one_direction = recurrent_module._read_direction

    def noted(lstm, weights, rows):
        types.add(rows.dtype)
        return one_direction(lstm, weights, rows)

    monkeypatch.setattr(blocked_product, "_SMALLEST", 0)
    monkeypatch.setattr(recurrent_module, "_read_direction", noted)
    return types


@needs_kernel
@pytest.mark.parametrize("lengths", [LENGTHS, (5, 5, 5, 5)], ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_compiled_lstm_equals_that_of_pytorch_in_float64(lengths, bidirectional, plain_types):
    exact = network(nn.LSTM, num_layers=2, bidirectional=bidirectional)
    narrow = copy.deepcopy(exact).float()
    mask, results = torch.arange(5) < torch.tensor(lengths)[:, None], []
    for lstm, dtype in ((narrow, torch.float32), (exact, torch.float64)):
        inputs = random_inputs().to(dtype).requires_grad_()
        outputs, last = read_rows(lstm, inputs, mask)
        (outputs.pow(2).sum() + last.pow(3).sum()).backward()
        gradients = [inputs.grad, *(parameter.grad for parameter in lstm.parameters())]
        results.append([outputs, last, *gradients])

    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-6)
    assert plain_types == {torch.float64}


@needs_kernel
def test_compiled_lstm_drops_out_between_layers(plain_types):
    lstm = network(nn.LSTM, num_layers=2, dropout=0.5).float()
    inputs = random_inputs().float()
    (_, first), (_, other) = read_rows(lstm, inputs, MASK), read_rows(lstm, inputs, MASK)
    lstm.eval()
    (_, kept), (_, again) = read_rows(lstm, inputs, MASK), read_rows(lstm, inputs, MASK)

    assert not torch.equal(first, other)
    assert torch.equal(kept, again)
    assert not plain_types


@needs_kernel
@torch.no_grad()
def test_compiled_lstm_reads_a_row_the_same_in_any_batch(plain_types):
    torch.manual_seed(1)
    lstm = nn.LSTM(1000, 5, num_layers=2, bidirectional=True, batch_first=True)
    lengths, inputs = (6, 9, 1, 3), torch.randn(4, 9, 1000)
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]

    outputs, last = read_rows(lstm, inputs, mask)

    for row, length in enumerate(lengths):
        alone = read_rows(lstm, inputs[row : row + 1, :length], mask[row : row + 1, :length])
        assert torch.equal(outputs[row, :length], alone[0][0])
        assert torch.equal(last[row], alone[1][0])
    assert not plain_types


@needs_kernel
def test_other_lstms_are_left_to_pytorch(plain_types, monkeypatch):
    """In mixed precision, compiled by torch, without biases, and of a batch without words."""
    lstm, inputs = network(nn.LSTM).float(), random_inputs().float()
    expected, _ = read_rows(lstm, inputs, MASK)
    assert not plain_types
    outputs, _ = read_rows(lstm, inputs, torch.zeros_like(MASK))
    assert outputs.requires_grad
    assert not outputs.any()

    with torch.autocast("cpu", torch.bfloat16):
        assert read_rows(lstm, inputs, MASK)[0].dtype == torch.bfloat16
    plain_types.clear()
    with monkeypatch.context() as patched:
        patched.setattr(torch.compiler, "is_compiling", lambda: True)
        torch.testing.assert_close(read_rows(lstm, inputs, MASK)[0], expected)
    assert plain_types == {torch.float32}
    plain_types.clear()
    read_rows(network(nn.LSTM, bias=False).float(), inputs, MASK)
    assert plain_types == {torch.float32}
