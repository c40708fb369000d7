"""Frozen LSTMs in one call equal the loop over their steps."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from elmo_framework.kernels import lstm_stack as module
from elmo_framework.kernels import packed_product
from elmo_framework.kernels.product import Precision
from elmo_framework.nn import elmo_lstm
from elmo_framework.nn.elmo_lstm import ElmoLstm, ProjectedLstm, read_frozen
from elmo_framework.nn.lstm_layer import LstmState
from elmo_framework.nn.packing import reversed_rows

needs_compiler = pytest.mark.skipif(module._library() is None, reason="needs a C compiler")
LENGTHS = [5, 1, 40, 0, 7, 7, 3, 2]


def lstm(
    projection_dim: int | None, *, num_layers: int = 2, clip: float | None = None, skip: bool = True
) -> ElmoLstm:
    output_dim = projection_dim or 64
    cells = [
        ProjectedLstm(
            dim,
            64,
            projection_dim=projection_dim,
            cell_clip=clip,
            projection_clip=None if clip is None else clip / 4,
        )
        for dim in (12, *[output_dim] * (num_layers - 1))
    ]
    return ElmoLstm(cells, use_skip_connections=skip)


def freeze(module: ElmoLstm, precision: Precision = "float32") -> ElmoLstm:
    for cell in module.cells:
        assert isinstance(cell, ProjectedLstm)
        cell.freeze(precision)
    return module


def batch(lengths: Sequence[int] = LENGTHS) -> tuple[Tensor, Tensor]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return 2 * torch.randn(*mask.shape, 12) * mask[..., None], mask


def random_states(module: ElmoLstm, num_rows: int) -> tuple[LstmState, ...]:
    return tuple(
        LstmState(torch.randn(num_rows, module.output_dim) / 9, torch.randn(num_rows, 64) / 3)
        for _ in range(module.num_layers)
    )


@torch.no_grad()
def loop(
    lstm: ElmoLstm, words: Tensor, mask: Tensor, states: tuple[LstmState, ...]
) -> tuple[Tensor, tuple[LstmState, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elmo_lstm, "read_frozen", lambda *_: None)
        layers, ends = lstm(words, mask, states)
        return layers, ends


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("projection_dim", [None, 64])
@pytest.mark.parametrize("skip", [True, False])
def test_both_directions_equal_two_loops(
    projection_dim: int | None, clip: float | None, skip: bool, precision: Precision
) -> None:
    lstms = [freeze(lstm(projection_dim, clip=clip, skip=skip), precision) for _ in range(2)]
    words, mask = batch()
    states = [random_states(each, len(words)) for each in lstms]
    copies = [[*map(torch.clone, state)] for each in states for state in each]
    dim = lstms[0].output_dim
    outputs = torch.zeros(2, *mask.shape, 2 * dim)
    with torch.no_grad():
        ends = read_frozen(lstms, words, mask, states, outputs)
    assert ends is not None
    for number, each in enumerate(lstms):
        inputs = reversed_rows(words, mask) if number else words
        layers, expected = loop(each, inputs, mask, states[number])
        found = outputs[..., number * dim : (number + 1) * dim]
        if number:
            layers = torch.stack([reversed_rows(layer, mask) for layer in layers])
        torch.testing.assert_close(found, layers, rtol=1e-5, atol=1e-5)
        for end, of_loop in zip(ends[number], expected, strict=True):
            torch.testing.assert_close([*end], [*of_loop], rtol=1e-5, atol=1e-5)
    unchanged = [[*state] for each in states for state in each]
    torch.testing.assert_close(copies, unchanged, rtol=0, atol=0)


@needs_compiler
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_row_has_the_same_bits_alone(precision: Precision, num_threads: int) -> None:
    module = freeze(lstm(64, num_layers=3), precision)
    words, mask = batch([9, 3] * 40)
    threads = torch.get_num_threads()
    with torch.no_grad():
        torch.set_num_threads(num_threads)
        layers, _ = module(words, mask)
        torch.set_num_threads(threads)
        for row in (0, 1, 79):
            alone, _ = module(words[row : row + 1], mask[row : row + 1])
            assert torch.equal(alone[:, 0], layers[:, row])


@needs_compiler
def test_states_in_half_precision_are_converted() -> None:
    module = freeze(lstm(64))
    words, mask = batch()
    states = tuple(LstmState(*map(Tensor.half, each)) for each in random_states(module, len(mask)))
    wide = tuple(LstmState(*map(Tensor.float, each)) for each in states)
    results = []
    with torch.no_grad():
        for each in (states, wide):
            outputs = torch.zeros(2, *mask.shape, module.output_dim)
            assert read_frozen([module], words, mask, [each], outputs) is not None
            results.append(outputs)
    assert torch.equal(*results)


@needs_compiler
def test_tensors_of_other_shapes_are_refused() -> None:
    module = freeze(lstm(64))
    words, mask = batch()
    states = random_states(module, len(mask))
    fewer = tuple(LstmState(*(part[:2] for part in each)) for each in states)
    wide = tuple(LstmState(*map(Tensor.double, each)) for each in states)
    outputs = torch.empty(2, *mask.shape, module.output_dim)
    stack = elmo_lstm._stack([module])
    assert stack is not None
    stack.read(words, mask, [states], outputs)
    for wrong in (
        (words[..., :11].contiguous(), mask, [states], outputs),
        (words, mask[:, :-1], [states], outputs),
        (words, torch.cat([mask, mask]), [states], outputs),
        (words, mask, [fewer], outputs),
        (words, mask, [states], outputs[:1]),
    ):
        with pytest.raises(ValueError, match=r"has the shape \(.*\); expected"):
            stack.read(*wrong)
    with pytest.raises(TypeError, match="states in float32"):
        stack.read(words, mask, [wide], outputs)


@needs_compiler
def test_numbers_that_are_none_are_passed_on() -> None:
    module = freeze(lstm(64, clip=1.0))
    words, mask = batch([4, 4])
    words[0, 1, 5] = torch.nan
    with torch.no_grad():
        layers, _ = module(words, mask)
    assert layers[:, 0, 1:].isnan().all()
    assert layers[:, 0, 0].isfinite().all()
    assert layers[:, 1].isfinite().all()


@needs_compiler
def test_one_call_reads_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> object:
        raise AssertionError("a loop over the steps was asked for")

    monkeypatch.setattr(elmo_lstm, "read_layer", refused)
    with torch.no_grad():
        freeze(lstm(64))(*batch())


@needs_compiler
def test_layers_that_are_not_supported_are_read_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    words, mask = batch()
    outputs = torch.zeros(2, *mask.shape, 64)
    with torch.no_grad():
        assert read_frozen([lstm(64)], words, mask, [()], outputs) is None  # not frozen
        other = freeze(lstm(20))
        assert read_frozen([other], words, mask, [()], outputs) is None
        assert read_frozen([freeze(lstm(64))], words.double(), mask, [()], outputs) is None
        dropping = freeze(ElmoLstm([ProjectedLstm(12, 64)], dropout=0.5))
        assert read_frozen([dropping], words, mask, [()], outputs[:1]) is None
        monkeypatch.setattr(elmo_lstm, "LARGEST_WEIGHT", 1000)
        assert read_frozen([freeze(lstm(64))], words, mask, [()], outputs) is None
    assert read_frozen([freeze(lstm(64))], words, mask, [()], outputs) is None  # with gradients


def test_frozen_layers_are_equal_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    module_ = lstm(64, clip=2.0)
    words, mask = batch()
    with torch.no_grad():
        expected, _ = freeze(module_)(words, mask)
        monkeypatch.setattr(packed_product, "_library", lambda *_: None)
        layers, _ = freeze(module_)(words, mask)
    torch.testing.assert_close(layers, expected, rtol=1e-5, atol=1e-5)
