import math

import numpy as np
import pytest
import torch

from elmo_framework.nn.feedforward import FeedForward, Layer, activate

LAYERS = [Layer(4, "tanh", 0.0), Layer(2, "relu", 0.0)]


def test_layers_are_a_product_and_an_activation():
    torch.manual_seed(1)
    network = FeedForward(3, LAYERS).double()
    inputs = torch.randn(5, 2, 3, dtype=torch.float64)

    first, second = network.linear_layers
    hidden = np.tanh(inputs.numpy() @ first.weight.detach().numpy().T + first.bias.detach().numpy())
    expected = hidden @ second.weight.detach().numpy().T + second.bias.detach().numpy()

    np.testing.assert_allclose(network(inputs).detach(), np.maximum(expected, 0), atol=1e-14)
    assert network.output_dim == 2


def test_dropout_follows_the_activation_in_training_only():
    torch.manual_seed(1)
    network = FeedForward(3, [Layer(1000, "sigmoid", 0.5)])
    inputs = torch.randn(1, 3)

    dropped, kept = network(inputs), network.eval()(inputs)

    assert 0.4 < float((dropped == 0).float().mean()) < 0.6
    torch.testing.assert_close(dropped[dropped > 0], 2 * kept[dropped > 0])


def test_gradients_reach_every_parameter():
    torch.manual_seed(1)
    network = FeedForward(3, [Layer(4, "tanh", 0.0), Layer(2, "linear", 0.0)])

    network(torch.randn(5, 3)).sum().backward()

    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())


def test_without_layers_nothing_changes():
    inputs = torch.randn(2, 3)

    network = FeedForward(3, [])

    assert network.output_dim == 3
    assert torch.equal(network(inputs), inputs)


MAXOUT = [Layer(4, "linear", 0.0, pool_size=3), Layer(2, "linear", 0.0, pool_size=2)]


def maxout_network(layers=MAXOUT):
    torch.manual_seed(1)
    return FeedForward(5, layers).double()


def inputs(num_rows=6):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(num_rows, 5, dtype=torch.float64, generator=generator)


def test_maxout_is_the_maximum_of_its_products():
    maxout = maxout_network()

    expected = inputs().numpy()
    for linear, layer in zip(maxout.linear_layers, MAXOUT, strict=True):
        weight, bias = (value.detach().numpy() for value in linear.parameters())
        products = expected @ weight.T + bias
        columns = [
            products[:, at * layer.pool_size : (at + 1) * layer.pool_size].max(axis=1)
            for at in range(layer.dim)
        ]
        expected = np.stack(columns, axis=1)
    np.testing.assert_allclose(maxout(inputs()).detach(), expected, atol=1e-12)
    assert maxout.output_dim == 2


def test_a_maxout_batch_equals_its_rows_one_by_one():
    maxout = maxout_network()

    rows = torch.cat([maxout(row[None]) for row in inputs()])

    torch.testing.assert_close(maxout(inputs()), rows, rtol=0, atol=1e-12)


def test_gradients_reach_every_parameter_of_maxout():
    maxout = maxout_network()

    maxout(inputs(100)).square().sum().backward()

    assert all(value.grad.any() for value in maxout.parameters())


def test_dropout_follows_each_maxout_layer_in_training_only():
    maxout = maxout_network([Layer(1000, "linear", 0.4, pool_size=2)])
    torch.manual_seed(3)

    share = float((maxout(inputs(1)) == 0).double().mean())

    assert 0.3 < share < 0.5
    assert maxout.eval()(inputs(1)).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("relu", 0.0), ("tanh", math.tanh(-2)), ("sigmoid", 1 / (1 + math.exp(2))), ("linear", -2.0)],
)
def test_an_activation_is_applied_by_name(name, expected):
    assert float(activate(torch.tensor(-2.0, dtype=torch.float64), name)) == pytest.approx(expected)
