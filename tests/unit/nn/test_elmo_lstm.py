import numpy as np
import pytest
import torch

from elmo_framework.nn.elmo_lstm import ElmoLstm, ProjectedLstm
from elmo_framework.nn.lstm_layer import LstmState
from tests.numpy_bilm import NumpyBiLm

LENGTHS = [3, 0, 5, 1]
MASK = torch.arange(6) < torch.tensor(LENGTHS)[:, None]
SETTINGS = [
    {},
    {"use_skip_connections": False},
    {"projection_dim": None},
    {"num_layers": 1},
    {"num_layers": 3},
    {"cell_clip": None, "projection_clip": None},
    {"cell_clip": 0.3},
    {"projection_clip": 0.2},
]


def network(**changes) -> ElmoLstm:
    torch.manual_seed(0)
    settings = {"projection_dim": 4, "cell_clip": 3.0, "projection_clip": 3.0, **changes}
    stack = {k: settings.pop(k) for k in ("use_skip_connections", "dropout") if k in settings}
    output_dim = settings["projection_dim"] or 7
    dims = [5, *[output_dim] * (settings.pop("num_layers", 2) - 1)]
    module = ElmoLstm([ProjectedLstm(dim, 7, **settings) for dim in dims], **stack).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def inputs() -> torch.Tensor:
    return torch.randn(4, 6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(1))


def starts(module: ElmoLstm) -> tuple[LstmState, ...]:
    torch.manual_seed(2)
    zeros = [cell.zero_state(4) for cell in module.cells]
    return tuple(LstmState(*(torch.randn_like(t) for t in state)) for state in zeros)


def reference(module: ElmoLstm, **changes) -> NumpyBiLm:
    weights = {}
    for layer, cell in enumerate(module.cells):
        name = f"RNN_0/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        held = {key: value.detach().numpy() for key, value in cell.named_parameters()}
        both = held["input_weight"].T, held["recurrent_weight"].T
        weights |= {f"{name}/W_0": np.concatenate(both), f"{name}/B": held["bias"]}
        if "projection_weight" in held:
            weights[f"{name}/W_P_0"] = held["projection_weight"].T
    settings = {
        "dim": 7,
        "projection_dim": module.output_dim,
        "n_layers": module.num_layers,
        "cell_clip": changes.get("cell_clip", 3.0),
        "proj_clip": changes.get("projection_clip", 3.0),
        "use_skip_connections": changes.get("use_skip_connections", True),
    }
    return NumpyBiLm({"lstm": settings}, weights)


def row_of(output: tuple, row: int) -> tuple[np.ndarray, list]:
    length, (layers, states) = LENGTHS[row], output
    ends = [(state.memory[row], state.hidden[row]) for state in states]
    return layers[:, row, :length].detach().numpy(), ends


@pytest.mark.parametrize("changes", SETTINGS)
@pytest.mark.parametrize("is_carried", [False, True])
def test_rows_equal_the_numpy_reference(changes: dict, is_carried: bool) -> None:
    module = network(**changes)
    start = starts(module) if is_carried else ()
    output, numpy_bilm = module(inputs(), MASK, start), reference(module, **changes)
    for row in (0, 2, 3):
        state = [(s.memory[row].numpy(), s.hidden[row].numpy()) for s in start] or None
        vectors = list(inputs()[row, : LENGTHS[row]].numpy())
        expected, expected_ends = numpy_bilm.direction(0, vectors, state)
        layers, ends = row_of(output, row)
        np.testing.assert_allclose(layers, expected, atol=1e-12)
        for found, wanted in zip(ends, expected_ends, strict=True):
            np.testing.assert_allclose(found[0].detach(), wanted[0], atol=1e-12)
            np.testing.assert_allclose(found[1].detach(), wanted[1], atol=1e-12)


def test_layers_are_zero_at_padding() -> None:
    assert (network()(inputs(), MASK)[0][:, ~MASK] == 0).all()


def test_a_row_without_words_keeps_its_state() -> None:
    module = network()
    start = starts(module)
    for before, after in zip(start, module(inputs(), MASK, start)[1], strict=True):
        assert torch.equal(after.hidden[1], before.hidden[1])
        assert torch.equal(after.memory[1], before.memory[1])


def test_rows_without_words_are_zero_and_keep_their_state() -> None:
    module = network()
    start = starts(module)
    layers, states = module(inputs(), torch.zeros_like(MASK), start)
    assert (layers == 0).all()
    assert torch.equal(states[1].memory, start[1].memory)


def test_padding_has_no_effect() -> None:
    module, wider = network(), torch.nn.functional.pad(inputs(), (0, 0, 0, 3), value=7.0)
    layers, states = module(wider, torch.nn.functional.pad(MASK, (0, 3)))
    plain_layers, plain_states = module(inputs(), MASK)
    torch.testing.assert_close(layers[:, :, :6], plain_layers)
    torch.testing.assert_close(states, plain_states)


def test_a_batch_equals_its_rows_one_by_one() -> None:
    module, start = network(), starts(network())
    layers, states = module(inputs(), MASK, start)
    for row in range(4):
        own = tuple(LstmState(s.hidden[row : row + 1], s.memory[row : row + 1]) for s in start)
        alone_layers, alone_states = module(inputs()[row : row + 1], MASK[row : row + 1], own)
        torch.testing.assert_close(alone_layers[:, 0], layers[:, row])
        for single, joint in zip(alone_states, states, strict=True):
            torch.testing.assert_close(single.memory[0], joint.memory[row])


def test_carried_state_joins_two_parts_of_a_text() -> None:
    module, mask = network(), torch.ones(4, 6, dtype=torch.bool)
    whole, whole_states = module(inputs(), mask)
    first, first_states = module(inputs()[:, :4], mask[:, :4])
    second, second_states = module(inputs()[:, 4:], mask[:, 4:], first_states)
    torch.testing.assert_close(torch.cat([first, second], dim=2), whole)
    torch.testing.assert_close(second_states, whole_states)


def test_gradients_reach_every_parameter_and_no_padding() -> None:
    module, vectors = network(), inputs().requires_grad_()
    module(vectors, MASK)[0].square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())
    assert ((vectors.grad.abs().sum(dim=2) > 0) == MASK).all()


def test_gradients_equal_finite_differences() -> None:
    module = network(cell_clip=0.5, projection_clip=0.6)
    vectors = inputs()[:, :3].requires_grad_()
    mask = MASK[:, :3]
    assert torch.autograd.gradcheck(lambda x: module(x, mask)[0], vectors)


def test_dropout_is_on_in_training_only() -> None:
    module = network(dropout=0.5)
    trained = module(inputs(), MASK)[0]
    plain = module.eval()(inputs(), MASK)[0]
    assert not torch.allclose(trained, plain)
    torch.testing.assert_close(plain, network()(inputs(), MASK)[0])


def test_skip_connection_adds_the_input_after_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mask of layer 2 drops the whole of its input, so nothing of layer 1 comes through."""
    module, rates = network(dropout=0.5), []

    def drop(words: torch.Tensor, rate: float, is_training: bool) -> torch.Tensor:
        rates.append((rate, is_training))
        return words * 0 if len(rates) == 2 else words

    monkeypatch.setattr("torch.nn.functional.dropout", drop)
    layers, _ = module(inputs(), MASK)
    alone = reference(module)
    vectors = [np.zeros(4)] * 3
    c, m = alone.zeros()
    expected = []
    for x in vectors:
        c, m = alone.step(0, 1, x, c, m)
        expected.append(m)
    assert rates == [(0.5, True)] * 2
    np.testing.assert_allclose(layers[1, 0, :3].detach(), expected, atol=1e-12)


CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


def cell_network(projection_dim=4, cell_clip=None, projection_clip=None) -> ProjectedLstm:
    torch.manual_seed(0)
    module = ProjectedLstm(
        3, 6, projection_dim=projection_dim, cell_clip=cell_clip, projection_clip=projection_clip
    ).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def states(module: ProjectedLstm, rows: int = 4) -> LstmState:
    zeros = module.zero_state(rows)
    return LstmState(torch.randn_like(zeros.hidden), 2 * torch.randn_like(zeros.memory))


def one_step(module: ProjectedLstm, inputs, before: LstmState) -> LstmState:
    return module(inputs, [len(inputs)], before)[1]


def cell_reference(module: ProjectedLstm, cell_clip, projection_clip) -> NumpyBiLm:
    held = {name: value.detach().numpy() for name, value in module.named_parameters()}
    both = np.concatenate([held["input_weight"].T, held["recurrent_weight"].T])
    weights = {f"{CELL}/W_0": both, f"{CELL}/B": held["bias"]}
    if "projection_weight" in held:
        weights[f"{CELL}/W_P_0"] = held["projection_weight"].T
    lstm = {"dim": 6, "projection_dim": module.output_dim}
    clips = {"cell_clip": cell_clip, "proj_clip": projection_clip}
    return NumpyBiLm({"lstm": {**lstm, **clips}}, weights)


@pytest.mark.parametrize("clips", [(None, None), (0.4, None), (None, 0.3), (0.4, 0.3)])
@pytest.mark.parametrize("projection_dim", [4, None])
def test_a_step_equals_the_numpy_reference(projection_dim, clips) -> None:
    module = cell_network(projection_dim, *clips)
    inputs, before = torch.randn(4, 3, dtype=torch.double), states(module)
    after = one_step(module, inputs, before)
    numpy_bilm = cell_reference(module, *clips)
    for row in range(4):
        memory, hidden = numpy_bilm.step(
            0, 0, *(tensor[row].numpy() for tensor in (inputs, before.memory, before.hidden))
        )
        np.testing.assert_allclose(after.memory[row].detach(), memory, atol=1e-12)
        np.testing.assert_allclose(after.hidden[row].detach(), hidden, atol=1e-12)


def test_cell_state_and_projected_output_are_clipped() -> None:
    module = cell_network(cell_clip=0.4, projection_clip=0.3)
    after = one_step(module, torch.randn(4, 3, dtype=torch.double), states(module))
    assert after.memory.abs().max() == 0.4
    assert after.hidden.abs().max() == 0.3


def test_output_without_projection_is_not_clipped() -> None:
    module = cell_network(projection_dim=None, projection_clip=0.01)
    after = one_step(module, torch.randn(4, 3, dtype=torch.double), states(module))
    assert after.hidden.abs().max() > 0.01


def test_gradients_reach_every_parameter_and_the_state() -> None:
    module = cell_network(cell_clip=3.0, projection_clip=3.0)
    before = LstmState(*(tensor.requires_grad_() for tensor in states(module)))
    after = one_step(module, torch.randn(4, 3, dtype=torch.double), before)
    after.hidden.square().sum().backward()
    reached = [*module.parameters(), *before]
    assert all(tensor.grad.abs().sum() > 0 for tensor in reached)


def test_parameters_start_as_in_bilm_tf() -> None:
    torch.manual_seed(0)
    module = ProjectedLstm(32, 128, projection_dim=32)
    bound = (6 / (64 + 512)) ** 0.5
    for weight in (module.input_weight, module.recurrent_weight):
        assert weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    bound = (6 / (128 + 32)) ** 0.5
    assert module.projection_weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert (module.bias == 0).all()
