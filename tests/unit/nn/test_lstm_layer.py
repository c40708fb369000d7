import copy

import pytest
import torch

from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.nn import lstm_layer
from elmo_framework.nn.elmo_lstm import ProjectedLstm
from elmo_framework.nn.lstm_layer import LstmState

SIZES = [4, 3, 3, 1]


def cell(projection_dim=3, dtype=torch.double, **clips) -> ProjectedLstm:
    torch.manual_seed(0)
    module = ProjectedLstm(2, 5, projection_dim=projection_dim, **clips).to(dtype)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def random_start(module: ProjectedLstm, rows: int = 4) -> LstmState:
    zeros = module.zero_state(rows)
    return LstmState(*(torch.randn_like(tensor).requires_grad_() for tensor in zeros))


def words(module: ProjectedLstm, sizes=SIZES) -> torch.Tensor:
    return torch.randn(sum(sizes), 2, dtype=module.bias.dtype, requires_grad=True)


def plain(module: ProjectedLstm, inputs, sizes, start, cell_clip=None, projection_clip=None):
    """Compute the layer by PyTorch's own differentiation, row by row and step by step."""
    hidden, memory = list(start.hidden), list(start.memory)
    outputs, first = [], 0
    for size in sizes:
        for row in range(size):
            sums = module.input_weight @ inputs[first + row] + module.bias
            i, j, f, o = (sums + module.recurrent_weight @ hidden[row]).chunk(4)
            kept = torch.sigmoid(f + 1) * memory[row] + torch.sigmoid(i) * torch.tanh(j)
            memory[row] = kept if cell_clip is None else kept.clamp(-cell_clip, cell_clip)
            hidden[row] = torch.sigmoid(o) * torch.tanh(memory[row])
            if module.projection_weight is not None:
                hidden[row] = module.projection_weight @ hidden[row]
                if projection_clip is not None:
                    hidden[row] = hidden[row].clamp(-projection_clip, projection_clip)
            outputs.append(hidden[row])
        first += size
    return torch.stack(outputs), LstmState(torch.stack(hidden), torch.stack(memory))


CLIPS = [{}, {"cell_clip": 0.5}, {"cell_clip": 0.7, "projection_clip": 0.4}]


@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("projection_dim", [3, None])
def test_values_and_gradients_equal_those_of_plain_steps(projection_dim, clips) -> None:
    module = cell(projection_dim, **clips)
    clips = clips if projection_dim else {**clips, "projection_clip": None}
    inputs, start = words(module), random_start(module)
    outputs, end = module(inputs, SIZES, start)
    expected, expected_end = plain(module, inputs, SIZES, start, **clips)
    of_outputs = torch.randn_like(outputs)
    of_end = [torch.randn_like(tensor) for tensor in end]
    sources = [*module.parameters(), inputs, *start]

    def gradients(results, ends):
        pairs = zip([results, *ends], [of_outputs, *of_end], strict=True)
        total = sum((result * of_result).sum() for result, of_result in pairs)
        return torch.autograd.grad(total, sources)

    torch.testing.assert_close((outputs, *end), (expected, *expected_end))
    torch.testing.assert_close(gradients(outputs, end), gradients(expected, expected_end))


@pytest.mark.parametrize("projection_dim", [3, None])
def test_gradcheck(projection_dim) -> None:
    module = cell(projection_dim, cell_clip=2.0, projection_clip=2.0)
    names = [name for name, _ in module.named_parameters()]

    def run(inputs, hidden, memory, *parameters):
        held = dict(zip(names, parameters, strict=True))
        arguments = (inputs, SIZES, LstmState(hidden, memory))
        outputs, end = torch.func.functional_call(module, held, arguments)
        return outputs, *end

    assert torch.autograd.gradcheck(
        run, (words(module), *random_start(module), *module.parameters())
    )


def test_no_gradient_where_the_cell_state_is_clipped() -> None:
    module = cell(cell_clip=1e-3)
    inputs, start = words(module, [4]), random_start(module)
    module(inputs, [4], start)[1].memory.sum().backward()
    assert (inputs.grad == 0).all()
    assert (start.memory.grad == 0).all()


def test_no_gradient_where_the_projection_is_clipped() -> None:
    module = cell(projection_clip=1e-6)
    inputs = words(module, [4])
    module(inputs, [4], module.zero_state(4))[0].sum().backward()
    assert (inputs.grad == 0).all()


@pytest.mark.parametrize("sizes", [[4, 3, 3, 1], [1], [1, 1, 1], [300, 299, 2], []])
def test_inference_equals_training_and_float64(sizes) -> None:
    """The compiled step, oneDNN's products and the chunks of steps change nothing but rounding."""
    module = cell(dtype=torch.float32, cell_clip=1.5, projection_clip=1.5)
    rows = sizes[0] if sizes else 2
    inputs, start = words(module, sizes), random_start(module, rows)
    outputs, end = module(inputs, sizes, start)
    with torch.no_grad():
        read, read_end = module(inputs, sizes, start)
        wide = copy.deepcopy(module).double()
        double_start = LstmState(*(tensor.double() for tensor in start))
        exact, exact_end = wide(inputs.double(), sizes, double_start)
    torch.testing.assert_close((read, *read_end), (outputs, *end), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        (read.double(), *(t.double() for t in read_end)), (exact, *exact_end), atol=1e-6, rtol=1e-5
    )


def test_row_is_bit_identical_with_any_other_rows() -> None:
    torch.manual_seed(0)
    module = ProjectedLstm(32, 256, projection_dim=64, cell_clip=3.0, projection_clip=3.0)
    module.freeze("float32")
    inputs = torch.randn(20, 70, 32)
    with torch.no_grad():
        many, _ = module(inputs.flatten(0, 1), [70] * 20, module.zero_state(70))
        for rows in (1, 2, 7, 33):
            few, _ = module(inputs[:, :rows].flatten(0, 1), [rows] * 20, module.zero_state(rows))
            assert torch.equal(few.view(20, rows, 64), many.view(20, 70, 64)[:, :rows])


def test_last_row_of_a_batch_is_bit_identical_to_a_single_row() -> None:
    torch.manual_seed(0)
    module = ProjectedLstm(32, 256, projection_dim=64, cell_clip=3.0, projection_clip=3.0)
    module.freeze("float32")
    rows = torch.randn(30, 32), torch.randn(11, 32), torch.randn(10, 32)
    sizes = [3] * 10 + [2] + [1] * 19
    steps = [row[step] for step in range(30) for row in rows if step < len(row)]
    with torch.no_grad():
        packed, end = module(torch.stack(steps), sizes, module.zero_state(3))
        alone, end_alone = module(rows[0], [1] * 30, module.zero_state(1))
    first = [sum(sizes[:step]) for step in range(30)]
    assert torch.equal(packed[first], alone)
    for state, expected in zip(end, end_alone, strict=True):
        assert state.shape[0] == 3
        assert torch.equal(state[:1], expected)


def test_frozen_row_takes_the_code_for_accelerators() -> None:
    module = ProjectedLstm(32, 64, projection_dim=64)
    module.freeze("float32")
    inputs = torch.randn(5, 32)
    with torch.no_grad():
        expected, _ = module(inputs, [1] * 5, module.zero_state(1))
        with accelerator_code():
            module.freeze("float32")
            outputs, _ = module(inputs, [1] * 5, module.zero_state(1))
    torch.testing.assert_close(outputs, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_low_precision_comes_near(precision) -> None:
    module = cell(dtype=torch.float32, cell_clip=3.0, projection_clip=3.0)
    inputs, start = words(module), random_start(module)
    with torch.no_grad():
        exact, _ = module(inputs, SIZES, start)
        module.freeze(precision)
        near, _ = module(inputs, SIZES, start)
    assert not torch.equal(near, exact)
    assert ((near - exact).norm() / exact.norm()).item() < 0.05


def test_mixed_precision_training_is_close() -> None:
    module = cell(dtype=torch.float32, cell_clip=3.0, projection_clip=3.0)
    inputs = words(module)
    parameters = dict(module.named_parameters())

    def trained(enabled: bool) -> dict[str, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            outputs, end = module(inputs, SIZES, module.zero_state(4))
            loss = outputs.square().sum() + end.memory.float().sum()
        gradients = torch.autograd.grad(loss, [inputs, *parameters.values()])
        names = ["outputs", "memory", "inputs", *parameters]
        return dict(zip(names, [outputs, end.memory, *gradients], strict=True))

    exact, near = trained(enabled=False), trained(enabled=True)
    assert near["memory"].dtype == torch.float32
    assert not torch.equal(near["outputs"].float(), exact["outputs"])
    for name, value in exact.items():
        assert ((near[name] - value).norm() / value.norm()).item() < 0.05, name


def test_kernels_read_gradients_that_are_contiguous(monkeypatch: pytest.MonkeyPatch) -> None:
    are_contiguous = []

    def noted(gradient: torch.Tensor, state: torch.Tensor, *others: object) -> None:
        are_contiguous.append(gradient.is_contiguous() and state.is_contiguous())
        clipped_gradient(gradient, state, *others)

    clipped_gradient = lstm_layer.clipped_gradient
    monkeypatch.setattr(lstm_layer, "clipped_gradient", noted)
    module = cell()
    start = random_start(module)
    with accelerator_code():
        outputs, end = module(words(module), SIZES, start)
        # The gradient of a sum is one number that is expanded, that of a transposition transposed.
        turned = (state.t() * torch.rand(state.t().shape) for state in end)
        (outputs.sum() + sum(each.sum() for each in turned)).backward()
    assert are_contiguous == [True] * len(SIZES)
