import math

import pytest
import torch
from torch import nn

from elmo_framework.model.initializer import lstm_hidden_bias
from elmo_framework.nn.elmo_lstm import ProjectedLstm
from elmo_framework.nn.highway_lstm import HighwayLstm
from elmo_framework.nn.lstm_layer import LstmState
from elmo_framework.nn.part import Gates, gates_of

OPEN = 1 / (1 + math.exp(-1))  # a forget gate whose bias is 1


def without_weights(module: nn.Module) -> nn.Module:
    """The module with zeros for weights, and biases as `lstm_hidden_bias` fills them."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(0.0 if "weight" in name or name == "bias_ih_l0" else math.nan)
            gates = gates_of(module, name)
            if math.isnan(parameter.flatten()[0]):
                lstm_hidden_bias().fill(parameter, gates)
    return module


def test_cell_state_of_torch_lstm_decays_by_the_forget_gate() -> None:
    lstm = without_weights(nn.LSTM(3, 2))

    _, (_, memory) = lstm(torch.ones(1, 1, 3), (torch.zeros(1, 1, 2), torch.ones(1, 1, 2)))

    torch.testing.assert_close(memory, torch.full((1, 1, 2), OPEN))


@pytest.mark.parametrize("projection_dim", [None, 3])
def test_cell_state_of_projected_lstm_decays_by_forget_gate(
    projection_dim: int | None,
) -> None:
    lstm = without_weights(ProjectedLstm(3, 2, projection_dim=projection_dim))
    state = LstmState(torch.zeros(1, lstm.output_dim), torch.ones(1, 2))

    with torch.no_grad():
        _, after = lstm(torch.ones(1, 3), [1], state)

    torch.testing.assert_close(after.memory, torch.full((1, 2), OPEN))


def test_cell_state_of_highway_lstm_decays_by_forget_gate() -> None:
    lstm = without_weights(HighwayLstm(1, 1, use_highway=False))
    with torch.no_grad():
        lstm.input_weight[1] = 1.0  # of j

        outputs = lstm(torch.tensor([[2.0], [0.0]]), [1, 1])

    first = 0.5 * math.tanh(2.0)
    expected = [[0.5 * math.tanh(first)], [0.5 * math.tanh(OPEN * first)]]
    torch.testing.assert_close(outputs, torch.tensor(expected))


def test_gates_are_blocks_of_the_rows() -> None:
    lstm, gru = nn.LSTM(3, 2, proj_size=1), nn.GRU(3, 2)
    highway, projected = HighwayLstm(3, 2), ProjectedLstm(3, 2, projection_dim=1)

    assert gates_of(lstm, "weight_ih_l0_reverse") == Gates(4, forget=1)
    assert gates_of(lstm, "bias_hh_l0") == Gates(4, forget=1, is_bias=True)
    assert gates_of(lstm, "weight_hr_l0") is None
    assert gates_of(gru, "weight_hh_l0") == Gates(3, forget=None)
    assert gates_of(nn.Linear(2, 2), "weight") is None
    assert projected.parameter_gates("projection_weight") is None
    for module in (highway, projected, gru):
        for name, parameter in module.named_parameters():
            gates = gates_of(module, name)
            if gates is not None:
                assert len(parameter.flatten()) % gates.num_gates == 0
                assert gates.is_bias == ("bias" in name)
