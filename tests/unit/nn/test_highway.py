import numpy as np
import pytest
import torch

from elmo_framework.nn.highway import Highway
from tests.numpy_bilm import sigmoid


def network(num_layers: int = 2) -> Highway:
    torch.manual_seed(0)
    module = Highway(5, num_layers).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def test_carry_gate_weights_the_transformed_vector() -> None:
    module, vector = network(), np.random.default_rng(0).standard_normal(5)
    expected = vector
    for layer in module.layers:
        carry, transform = layer.carry, layer.transform
        gate = sigmoid(carry.weight.detach().numpy() @ expected + carry.bias.detach().numpy())
        moved = transform.weight.detach().numpy() @ expected + transform.bias.detach().numpy()
        expected = gate * np.maximum(moved, 0) + (1 - gate) * expected
    np.testing.assert_allclose(module(torch.tensor(vector)).detach(), expected, atol=1e-12)


def test_no_layers_change_nothing() -> None:
    vectors = torch.randn(3, 5)
    assert torch.equal(Highway(5, 0)(vectors), vectors)


def test_a_batch_equals_its_rows_one_by_one() -> None:
    module, vectors = network(), torch.randn(2, 3, 5, dtype=torch.double)
    alone = torch.stack([torch.stack([module(vector) for vector in row]) for row in vectors])
    torch.testing.assert_close(module(vectors), alone)


@pytest.mark.parametrize("dim", [9, 16, 50, 64])
def test_a_row_has_the_same_bits_among_any_others(dim: int) -> None:
    torch.manual_seed(0)
    module, rows = Highway(dim, 1), 4 * torch.randn(90, dim)
    for layer in module.layers:
        layer.carry.freeze("float32")
        layer.transform.freeze("float32")
    with torch.no_grad():
        together = module(rows)
        for number in range(1, len(rows)):
            assert torch.equal(module(rows[:number]), together[:number])


def test_frozen_layers_read_bfloat16_in_mixed_precision() -> None:
    torch.manual_seed(0)
    module, rows = Highway(8, 1), torch.randn(4, 3, 8).bfloat16()
    expected = module(rows.float())
    for layer in module.layers:
        layer.carry.freeze("float32")
        layer.transform.freeze("float32")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(module(rows).float(), expected, atol=0.02, rtol=0.02)


def test_gradients_reach_every_parameter() -> None:
    module = network()
    module(torch.randn(20, 5, dtype=torch.double)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())


def test_parameters_start_as_in_bilm_tf() -> None:
    torch.manual_seed(0)
    layer = Highway(256, 1).layers[0]
    for linear in (layer.carry, layer.transform):
        assert linear.weight.std().item() == pytest.approx(1 / 16, rel=0.02)
    assert (layer.carry.bias == -2).all()
    assert (layer.transform.bias == 0).all()
