from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import lstm_row as module
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.kernels.lstm_row import RowReader
from elmo_framework.kernels.lstm_step import step
from elmo_framework.kernels.product import Product, prepared

needs_compiler = pytest.mark.skipif(module._library() is None, reason="needs a C compiler")


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def weight(num_outputs: int, num_inputs: int) -> tuple[Tensor, Product]:
    values = random(num_outputs, num_inputs) / num_inputs**0.5
    return values, prepared(values)


def reader(
    cell: int, hidden: int | None, **clips: float | None
) -> tuple[RowReader | None, Callable[..., tuple[Tensor, Tensor, Tensor]]]:
    """Return the reader of a layer, and the loop over its steps."""
    recurrent = weight(4 * cell, hidden or cell)
    projection = None if hidden is None else weight(hidden, cell)
    limits = {"cell_clip": None, "projection_clip": None, **clips}

    def loop(inputs: Tensor, output: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs = []
        for sums in inputs:
            gates = recurrent[1](output)
            clip = limits["cell_clip"]
            memory, output = step(gates, sums[None], memory, cell_clip=clip, keep=False)
            if projection is not None:
                output, limit = projection[1](output), limits["projection_clip"]
                output = output if limit is None else output.clamp(-limit, limit)
            outputs.append(output)
        return torch.cat(outputs), output, memory

    return module.row_reader(recurrent, projection, **limits)(), loop


@needs_compiler
@pytest.mark.parametrize("num_steps", [1, 2, 7])
@pytest.mark.parametrize("clips", [{}, {"cell_clip": 0.5, "projection_clip": 0.2}])
@pytest.mark.parametrize(("cell", "hidden"), [(64, None), (64, 128), (1024, 128), (1536, 64)])
def test_one_call_has_the_bits_of_a_loop(
    cell: int, hidden: int | None, clips: dict[str, float], num_steps: int
) -> None:
    read, loop = reader(cell, hidden, **clips)
    if read is None:  # oneDNN adds in another order here
        pytest.skip("oneDNN's order of summation is unknown")
    size = hidden or cell
    row = random(num_steps, 4 * cell), random(1, size), random(1, cell)
    copies = [tensor.clone() for tensor in row]
    for result, expected in zip(read(*row), loop(*row), strict=True):
        assert torch.equal(result, expected)
    for tensor, copy in zip(row, copies, strict=True):
        assert torch.equal(tensor, copy)


@needs_compiler
def test_numbers_that_are_none_are_passed_on() -> None:
    read, loop = reader(64, 64, cell_clip=1.0, projection_clip=1.0)
    if read is None:
        pytest.skip("oneDNN's order of summation is unknown")
    row = random(3, 256), random(1, 64), random(1, 64)
    row[0][1, 5] = torch.nan
    for result, expected in zip(read(*row), loop(*row), strict=True):
        torch.testing.assert_close(result, expected, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("cell", "hidden"), [(20, 64), (64, 20), (64, 16384)], ids=["cell", "hidden", "large"]
)
def test_other_sizes_have_no_reader(cell: int, hidden: int) -> None:
    assert reader(cell, hidden)[0] is None


def test_without_a_compiler_there_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_library", lambda *tensors: None)
    assert reader(64, 64)[0] is None


def test_unknown_order_of_sums_has_no_reader() -> None:
    values = random(256, 64)
    turned = values.flip(1)  # adds in the opposite order
    recurrent = values, lambda rows: (rows.flip(1)[:, None] * turned).cumsum(2)[..., -1]
    read = module.row_reader(recurrent, None, cell_clip=None, projection_clip=None)
    assert read() is None


@needs_compiler
def test_wrong_tensors_are_refused() -> None:
    read, _ = reader(64, 64)
    if read is None:
        pytest.skip("oneDNN's order of summation is unknown")
    row = random(2, 256), random(1, 64), random(1, 64)
    with accelerator_code(), pytest.raises(TypeError, match="on the CPU"):
        read(*row)
    with pytest.raises(TypeError, match="float32"):
        read(row[0].double(), *row[1:])
