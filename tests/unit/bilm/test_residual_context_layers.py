from pathlib import Path

import pytest
import torch
from torch import Tensor

from elmo_framework.bilm import residual_context_layers
from elmo_framework.bilm.bilm import BiLm
from elmo_framework.bilm.context_layers import ContextLayers
from elmo_framework.bilm.files.load import bilm_files, read_bilm, save_bilm
from elmo_framework.bilm.files.weights_report import inspect_weights
from elmo_framework.config.parse import parse
from elmo_framework.errors import BuildError
from elmo_framework.kernels.backend import accelerator_code
from elmo_framework.layers.carried_state import CarriedState
from elmo_framework.nn.overlapping_windows import windows

TRANSFORMER = {"type": "transformer", "num_heads": 2, "head_dim": 4, "feedforward_dim": 7}
ALL = [
    {**TRANSFORMER, "memory_size": 3},
    {"type": "gru", "cell_size": 5},
    {"type": "linear_recurrence", "cell_size": 5, "num_layers": 3},
]
LENGTHS = torch.tensor([9, 4, 0])
MASK = torch.arange(9) < LENGTHS[:, None]


@pytest.fixture(params=ALL, ids=lambda raw: raw["type"])
def layers(request: pytest.FixtureRequest) -> ContextLayers:
    return build(request.param)


def build(raw: dict[str, object]) -> ContextLayers:
    torch.manual_seed(0)
    return parse(ContextLayers, raw, source="test").build(input_dim=4).double()


def vectors() -> Tensor:
    return torch.randn(3, 9, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def test_a_layer_is_as_wide_as_the_word_vectors(layers: ContextLayers) -> None:
    output = layers.read(vectors(), MASK, direction="forward")
    assert output.layers.shape == (layers.num_layers, 3, 9, 4)
    assert layers.output_dim == 4


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("cuts", [[1] * 9, [4, 5], [2, 1, 6]])
def test_reading_continues_from_the_returned_state(layers, direction, cuts) -> None:
    whole = layers.read(vectors(), MASK, direction=direction)
    pieces, state = [], None
    for words, mask in zip(vectors().split(cuts, 1), MASK.split(cuts, 1), strict=True):
        output = layers.read(words, mask, direction=direction, state=state)
        pieces.append(output.layers)
        state = output.state
    torch.testing.assert_close(torch.cat(pieces, dim=2), whole.layers)
    torch.testing.assert_close(state, whole.state)


def test_zeros_are_the_first_state(layers: ContextLayers) -> None:
    whole = layers.read(vectors(), MASK, direction="forward")
    zeros = tuple(torch.zeros_like(tensor) for tensor in whole.state)
    again = layers.read(vectors(), MASK, direction="forward", state=zeros)
    torch.testing.assert_close(again.layers, whole.layers)
    assert all((tensor[2] == 0).all() for tensor in whole.state)


def test_padding_is_zero_and_changes_nothing(layers: ContextLayers) -> None:
    whole = layers.read(vectors(), MASK, direction="forward")
    assert (whole.layers[:, ~MASK] == 0).all()
    noisy = torch.where(MASK[:, :, None], vectors(), 1e3 * torch.ones_like(vectors()))
    again = layers.read(noisy, MASK, direction="forward")
    torch.testing.assert_close(again.layers, whole.layers)
    torch.testing.assert_close(again.state, whole.state)
    alone = layers.read(vectors()[1:2, :4], MASK[1:2, :4], direction="forward")
    torch.testing.assert_close(alone.layers[:, 0], whole.layers[:, 1, :4])


def test_no_word_has_a_gradient_from_a_later_one(layers: ContextLayers) -> None:
    words, weights = vectors()[:1].requires_grad_(), torch.tensor([1.0, 2.0, -3.0, 4.0]).double()
    output = layers.read(words, MASK[:1], direction="forward").layers
    for layer in output:
        for place in range(9):
            value = layer[0, place] @ weights  # the sum of a normalized vector is constant
            (gradient,) = torch.autograd.grad(value, words, retain_graph=True)
            assert (gradient[0, place + 1 :] == 0).all()
            assert (gradient[0, place] != 0).any()


def test_directions_share_nothing(layers: ContextLayers) -> None:
    ahead = layers.read(vectors(), MASK, direction="forward").layers
    back = layers.read(vectors(), MASK, direction="backward").layers
    assert not torch.allclose(ahead, back)
    ahead.sum().backward()
    assert all(parameter.grad is None for parameter in layers.backward_layers.parameters())
    assert all(parameter.grad is not None for parameter in layers.forward_layers.parameters())


def test_a_long_row_is_read_in_pieces(layers, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = layers.read(vectors(), MASK, direction="forward")
    monkeypatch.setattr(residual_context_layers, "_STEPS_AT_ONCE", 2)
    with torch.no_grad():
        pieces = layers.read(vectors(), MASK, direction="forward")
    torch.testing.assert_close(pieces.layers, whole.layers)
    torch.testing.assert_close(pieces.state, whole.state)


def test_gates_are_computed_for_few_words_at_once() -> None:
    layers, shapes = build(ALL[2]), list[tuple[int, ...]]()
    first = layers.forward_layers[0]
    first.register_forward_hook(lambda _, arguments, outputs: shapes.append(arguments[0].shape))
    words, mask = vectors().repeat(1, 20, 1), torch.ones(3, 180, dtype=torch.bool)
    whole = layers.read(words, mask, direction="forward")
    with torch.no_grad():
        pieces = layers.read(words, mask, direction="forward")
        with accelerator_code():
            layers.read(words, mask, direction="forward")
    assert shapes == [(3, 180, 4), (3, 170, 4), (3, 10, 4), (3, 180, 4)]
    torch.testing.assert_close(pieces.layers, whole.layers)


@pytest.mark.parametrize("num_rows", [0, 513])
def test_a_batch_may_have_any_number_of_rows(layers: ContextLayers, num_rows: int) -> None:
    words = vectors()[:1, :2].repeat(num_rows, 1, 1)
    with torch.no_grad():
        output = layers.read(words, torch.ones(num_rows, 2, dtype=torch.bool), direction="forward")
    assert output.layers.shape == (layers.num_layers, num_rows, 2, 4)
    torch.testing.assert_close(output.layers[:, 1:], output.layers[:, :-1])


def test_state_follows_rows_of_batches_of_any_size(layers: ContextLayers) -> None:
    carried = CarriedState()
    for rows in (1, 3, 2):
        start = carried.rows(rows, torch.device("cpu"))
        state = layers.read(
            vectors()[:rows], MASK[:rows], direction="forward", state=start.get("forward")
        ).state
        carried.keep({"forward": state, "backward": state})
    again = CarriedState()
    again.load(carried.tensors())
    for one, other in zip(carried.rows(3, torch.device("cpu"))["forward"], state, strict=True):
        torch.testing.assert_close(one[:2], other)
    assert again.tensors().keys() == carried.tensors().keys()


def test_dropout_is_on_in_training_only() -> None:
    for raw in ALL:
        layers = build({**raw, "dropout": 0.5})
        trained = layers.read(vectors(), MASK, direction="forward").layers
        plain = layers.eval().read(vectors(), MASK, direction="forward").layers
        assert not torch.allclose(trained, plain)


@pytest.mark.parametrize("raw", ALL, ids=lambda raw: raw["type"])
def test_a_bilm_of_them_is_the_same_from_its_files(raw, tmp_path: Path) -> None:
    encoder = {"type": "char_cnn", "embedding_dim": 4, "filters": [[1, 4]], "num_highway": 0}
    parts = {"token_encoder": {**encoder, "projection_dim": 4}, "context_layers": raw}
    bilm = parse(BiLm, parts, source="test").build().eval()
    save_bilm(bilm, tmp_path)
    files = bilm_files(tmp_path)
    characters = torch.from_numpy(bilm.token_encoder.indexer.ids(["a", "word", "."]))[None]
    with torch.no_grad():
        layers = read_bilm(files)(characters).layers
    assert files.options.name == "bilm.json"
    torch.testing.assert_close(layers, bilm(characters).layers)
    assert inspect_weights(files).clips == {}


def test_an_odd_head_cannot_be_turned() -> None:
    with pytest.raises(BuildError, match="head_dim is 3; rotary positions need an even number"):
        build({**TRANSFORMER, "head_dim": 3})


@pytest.mark.parametrize("raw", ALL, ids=lambda raw: raw["type"])
def test_bfloat16_changes_the_layers_a_little(raw) -> None:
    layers, words = build(raw).float(), vectors().float()
    full = layers.read(words, MASK, direction="forward").layers
    with torch.autocast("cpu", torch.bfloat16):
        narrow = layers.read(words, MASK, direction="forward").layers
    assert narrow.dtype == torch.float32
    torch.testing.assert_close(narrow, full, atol=0.1, rtol=0.1)
    assert not torch.equal(narrow, full)


BIDIRECTIONAL = {**TRANSFORMER, "type": "bidirectional_transformer", "num_layers": 2}


def test_long_rows_are_read_in_overlapping_windows() -> None:
    narrow, wide = (build({**BIDIRECTIONAL, "window_size": size}) for size in (4, 9))
    words, mask = vectors(), MASK
    read = narrow.read(words, mask, direction="forward").layers
    assert (read[:, ~mask] == 0).all()
    # Four words fit: no window changes them.
    whole = wide.read(words, mask, direction="forward").layers
    torch.testing.assert_close(read[:, 1], whole[:, 1])
    assert not torch.allclose(read[:, 0], whole[:, 0])
    for window in windows(9, 4):
        part = words[:1, window.start : window.end]
        alone = wide.read(part, MASK[:1, :4], direction="forward").layers[:, 0]
        used = slice(window.first - window.start, window.last - window.start)
        torch.testing.assert_close(read[:, 0, window.first : window.last], alone[:, used])
    with torch.no_grad():
        torch.testing.assert_close(narrow.read(words, mask, direction="forward").layers, read)


def test_a_word_has_gradients_from_its_window_alone() -> None:
    layers = build({**BIDIRECTIONAL, "window_size": 4})
    words, weights = vectors()[:1].requires_grad_(), torch.tensor([1.0, 2.0, -3.0, 4.0]).double()
    output = layers.read(words, MASK[:1], direction="forward").layers
    for window in windows(9, 4):
        for place in range(window.first, window.last):
            (gradient,) = torch.autograd.grad(
                output[-1, 0, place] @ weights, words, retain_graph=True
            )
            seen = gradient[0].abs().sum(dim=1) > 0
            assert seen.nonzero().flatten().tolist() == [*range(window.start, window.end)]
