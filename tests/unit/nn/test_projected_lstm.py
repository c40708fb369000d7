import numpy as np
import pytest
import torch

from elmo_framework.nn.lstm_layer import LstmState
from elmo_framework.nn.projected_lstm import ProjectedLstm
from tests.numpy_bilm import NumpyBiLm

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


def network(projection_dim=4, cell_clip=None, projection_clip=None) -> ProjectedLstm:
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


def reference(module: ProjectedLstm, cell_clip, projection_clip) -> NumpyBiLm:
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
    module = network(projection_dim, *clips)
    inputs, before = torch.randn(4, 3, dtype=torch.double), states(module)
    after = one_step(module, inputs, before)
    numpy_bilm = reference(module, *clips)
    for row in range(4):
        memory, hidden = numpy_bilm.step(
            0, 0, *(tensor[row].numpy() for tensor in (inputs, before.memory, before.hidden))
        )
        np.testing.assert_allclose(after.memory[row].detach(), memory, atol=1e-12)
        np.testing.assert_allclose(after.hidden[row].detach(), hidden, atol=1e-12)


def test_cell_state_and_projected_output_are_clipped() -> None:
    module = network(cell_clip=0.4, projection_clip=0.3)
    after = one_step(module, torch.randn(4, 3, dtype=torch.double), states(module))
    assert after.memory.abs().max() == 0.4
    assert after.hidden.abs().max() == 0.3


def test_output_without_projection_is_not_clipped() -> None:
    module = network(projection_dim=None, projection_clip=0.01)
    after = one_step(module, torch.randn(4, 3, dtype=torch.double), states(module))
    assert after.hidden.abs().max() > 0.01


def test_gradients_reach_every_parameter_and_the_state() -> None:
    module = network(cell_clip=3.0, projection_clip=3.0)
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
