import copy

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from elmo_framework.kernels import highway_step
from elmo_framework.nn.highway_lstm import HighwayLstm
from elmo_framework.nn.packing import Packing

SIZES = [4, 3, 3, 1]
IS_WORD = torch.tensor([[row < size for size in SIZES] for row in range(SIZES[0])])
DIRECTIONS = pytest.mark.parametrize("is_backward", [False, True])
OPTIONS = pytest.mark.parametrize(
    "options", [{}, {"has_carry_bias": False}, {"use_highway": False}], ids=str
)


def layer(dtype: torch.dtype = torch.float64, **options: object) -> HighwayLstm:
    torch.manual_seed(0)
    module = HighwayLstm(3, 5, **options).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def words(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(sum(SIZES), 3, dtype=dtype, requires_grad=True)


def plain(
    module: HighwayLstm,
    inputs: Tensor,
    mask: Tensor | None = None,
    *,
    masks_output: bool = True,
) -> Tensor:
    """Read row by row and word by word, by PyTorch's own differentiation."""
    firsts = [sum(SIZES[:step]) for step in range(len(SIZES))]
    outputs = {}
    for row in range(SIZES[0]):
        places = [first + row for first, size in zip(firsts, SIZES, strict=True) if row < size]
        hidden = memory = inputs.new_zeros(5)
        for place in reversed(places) if module.is_backward else places:
            output, memory = plain_step(module, inputs[place], hidden, memory)
            hidden = output if mask is None else output * mask[row]
            outputs[place] = hidden if masks_output else output
    return torch.stack([outputs[place] for place in range(len(inputs))])


def plain_step(module, word, hidden, memory) -> tuple[Tensor, Tensor]:
    sums = module.input_weight @ word + module.recurrent_weight @ hidden + module.bias.flatten()
    i, j, f, o = sums.chunk(4)
    memory = f.sigmoid() * memory + i.sigmoid() * j.tanh()
    output = o.sigmoid() * memory.tanh()
    if module.highway_weight is None:
        return output, memory
    transform, carried = (module.highway_weight @ word).chunk(2)
    transform = (transform + module.transform_weight @ hidden + module.highway_bias[0]).sigmoid()
    carried = carried + module.highway_bias[1] if len(module.highway_bias) == 2 else carried
    return transform * output + (1 - transform) * carried, memory


@DIRECTIONS
@OPTIONS
def test_values_and_gradients_equal_those_of_plain_steps(options, is_backward):
    module, inputs = layer(is_backward=is_backward, **options), words()
    outputs, expected = module(inputs, SIZES), plain(module, inputs)
    leaves, upstream = [inputs, *module.parameters()], torch.randn_like(expected)

    torch.testing.assert_close(outputs, expected)
    for found, gradient in zip(
        torch.autograd.grad(outputs, leaves, upstream),
        torch.autograd.grad(expected, leaves, upstream),
        strict=True,
    ):
        torch.testing.assert_close(found, gradient)


@DIRECTIONS
@OPTIONS
def test_gradients_equal_differences(options, is_backward):
    module, inputs = layer(is_backward=is_backward, **options), words()
    parameters = tuple(module.parameters())

    assert torch.autograd.gradcheck(lambda *_: module(inputs, SIZES), (inputs, *parameters))


@DIRECTIONS
@OPTIONS
@pytest.mark.parametrize("recurrent_dropout", [0.0, 0.5])
def test_the_compiled_step_computes_the_same(options, is_backward, recurrent_dropout, monkeypatch):
    options = {**options, "is_backward": is_backward, "recurrent_dropout": recurrent_dropout}
    module, inputs = layer(torch.float32, **options), words(torch.float32)
    leaves, upstream = [inputs, *module.parameters()], torch.randn(sum(SIZES), 5)

    def read() -> list[Tensor]:
        torch.manual_seed(3)
        outputs = module(inputs, SIZES)
        return [outputs, *torch.autograd.grad(outputs, leaves, upstream)]

    found = read()
    monkeypatch.setattr(highway_step, "_library", lambda *_: None)
    for compiled, by_pytorch in zip(found, read(), strict=True):
        torch.testing.assert_close(compiled, by_pytorch)


def test_saturated_gates_have_finite_gradients(monkeypatch):
    sums = torch.tensor([-1e4, -100.0, -89.0, 89.0, 1e4]).repeat_interleave(64)[None, :]

    def step() -> list[Tensor]:
        gates, before, carried = sums.clone(), torch.ones(1, 64), torch.full((1, 64), 2.0)
        output, memory, hidden = (torch.empty(1, 64) for _ in range(3))
        highway_step.highway_step(
            torch.zeros_like(gates),
            gates,
            carried,
            None,
            before,
            output=output,
            memory=memory,
            hidden=hidden,
        )
        return [gates, output, memory, hidden]

    fast = step()
    monkeypatch.setattr(highway_step, "_library", lambda *_: None)
    for found, expected in zip(fast, step(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_gradients_of_usual_size_equal_plain_steps():
    torch.manual_seed(1)
    module, sizes = HighwayLstm(24, 32, is_backward=True), [20, 20, 18, 3]
    inputs, upstream = torch.randn(61, 24), torch.randn(61, 32)
    exact = copy.deepcopy(module).double()

    module(inputs, sizes).backward(upstream)
    exact(inputs.double(), sizes).backward(upstream.double())

    for found, expected in zip(module.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(found.grad.double(), expected.grad, rtol=1e-4, atol=1e-4)


@DIRECTIONS
def test_without_gradients_the_values_are_the_same(is_backward):
    module, inputs = layer(is_backward=is_backward), words()

    with torch.no_grad():
        found = module(inputs, SIZES)

    torch.testing.assert_close(found, plain(module, inputs))


@DIRECTIONS
@OPTIONS
@pytest.mark.parametrize("is_padded", [False, True])
def test_one_dropout_mask_per_row_acts_on_state_and_output(options, is_backward, is_padded):
    module, inputs = layer(is_backward=is_backward, recurrent_dropout=0.5, **options), words()
    packing = Packing.of(IS_WORD)
    torch.manual_seed(3)
    mask = functional.dropout(torch.ones(SIZES[0], 5, dtype=torch.float64), 0.5)

    torch.manual_seed(3)
    if is_padded:
        outputs = packing.pack(module.read_rows(packing.unpack(inputs), IS_WORD))
    else:
        outputs = module(inputs, SIZES)
    expected = plain(module, inputs, mask)

    torch.testing.assert_close(outputs, expected)
    leaves, upstream = [inputs, *module.parameters()], torch.randn_like(expected)
    for found, gradient in zip(
        torch.autograd.grad(outputs, leaves, upstream),
        torch.autograd.grad(expected, leaves, upstream),
        strict=True,
    ):
        torch.testing.assert_close(found, gradient)


@DIRECTIONS
@OPTIONS
def test_the_mask_may_act_on_the_state_alone(options, is_backward):
    """As in AllenNLP: the next step reads the masked output, the next layer all of it."""
    dropout = {"recurrent_dropout": 0.5, "masks_output": False}
    module, inputs = layer(is_backward=is_backward, **dropout, **options), words()
    torch.manual_seed(3)
    mask = functional.dropout(torch.ones(SIZES[0], 5, dtype=torch.float64), 0.5)
    torch.manual_seed(3)
    outputs = module(inputs, SIZES)
    torch.testing.assert_close(outputs, plain(module, inputs, mask, masks_output=False))


def test_nothing_is_dropped_in_evaluation():
    module, inputs = layer(recurrent_dropout=0.5).eval(), words()

    torch.testing.assert_close(module(inputs, SIZES), plain(module, inputs))


def test_initial_weights_are_orthonormal_and_forget_bias_is_one():
    module = HighwayLstm(7, 4)
    weights = [module.input_weight, module.recurrent_weight, module.highway_weight]

    for weight in weights:
        for block in weight.split(4):
            torch.testing.assert_close(block @ block.T, torch.eye(4), atol=1e-5, rtol=0)
    assert module.bias.tolist() == [[0] * 4, [0] * 4, [1] * 4, [0] * 4]
    assert not module.highway_bias.any()


def test_empty_input_gives_empty_output():
    assert HighwayLstm(3, 5)(torch.zeros(0, 3), []).shape == (0, 5)


def test_recurrence_has_the_precision_of_the_weights():
    module, inputs = layer(torch.float32), words(torch.float32)

    with torch.autocast("cpu", torch.bfloat16):
        found = module(inputs, SIZES)

    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain(module, inputs), atol=0.1, rtol=0.1)


@DIRECTIONS
def test_padded_rows_are_read_as_packed_ones(is_backward):
    module, inputs = layer(is_backward=is_backward), words()
    packing = Packing.of(IS_WORD)
    padded = packing.unpack(inputs).masked_fill(~IS_WORD[:, :, None], 9.0)

    found = module.read_rows(padded, IS_WORD)

    torch.testing.assert_close(packing.pack(found), module(inputs, SIZES))
    assert not found[~IS_WORD].any()
